"""What a look-back tells people: what was searched, and everything that was left out of it."""

import json

import msgspec
import pytest

from detector.cli.output import Format
from detector.cli.trace_report import RUNS_SHOWN, SHOWN, show_traced
from detector.finding import Confidence, Party, Run
from detector.trace.model import Explained, ProbableSource, Scanned, Traced
from tests.e2e.program import Capture

RUN = Run(source_start=7, sink_start=4_000, length=30, unexplained=30)


def party(name: str) -> Party:
    return Party(
        tenant=f"tenant-{name}", request_id=f"request-{name}", kind="prompt",
        started_at_ms=1_764_457_200_000, ended_at_ms=1_764_457_201_000,
    )  # fmt: skip


def source(name: str, *, runs: int = 1) -> ProbableSource:
    return ProbableSource(
        party=party(name), engine="engine", confidence=Confidence.HIGH, unexplained_tokens=30,
        runs=(RUN,) * runs,
    )  # fmt: skip


TRACED = Traced(
    sink=party("sink"), kv_pool="pool", engine="engine", response_tokens=5_000,
    sources=(source("a"),), explained=Explained(common=12),
    scanned=Scanned(
        sequences=2, tokens=9_000, first_ms=1_764_457_200_000, last_ms=1_764_457_260_000,
    ),
)  # fmt: skip


def told(capsys: Capture, traced: Traced, form: Format = Format.TABLE) -> tuple[str, str]:
    show_traced(traced, form)
    out = capsys.readouterr()
    return out.out, out.err


def test_a_search_without_gaps_tells_of_none(capsys: Capture) -> None:
    out, err = told(capsys, TRACED)
    assert "tenant-a/request-a" in out
    assert "30 tokens at 4,000 from its 7" in out
    assert err.count("\n") == 3
    assert "searched: 2 prompts and responses, 9,000 tokens, from 2025-11-29" in err


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"dropped": 1_200}, "1,200 weaker sources were let go"),
        ({"is_complete": False}, "not all was searched: the broker fell silent; try again"),
        (
            {"scanned": Scanned(other_keys=3)},
            "3 sequences under another secret were not compared",
        ),
        ({"scanned": Scanned(unreadable=4)}, "4 entries could not be read"),
        (
            {"sources": tuple(source(str(number)) for number in range(SHOWN + 2))},
            "2 more sources with -o json",
        ),
    ],
)
def test_what_was_left_out_is_told(capsys: Capture, change: dict[str, object], what: str) -> None:
    _, err = told(capsys, msgspec.structs.replace(TRACED, **change))
    assert f"{what}\n" in err
    assert err.count("\n") == 4


def test_a_search_that_found_nothing_to_read_names_no_time(capsys: Capture) -> None:
    _, err = told(capsys, msgspec.structs.replace(TRACED, scanned=Scanned()))
    assert "searched: 0 prompts and responses, 0 tokens\n" in err


@pytest.mark.parametrize(("more", "words"), [(1, "1 more run"), (3, "3 more runs")])
def test_runs_beyond_those_shown_are_counted(capsys: Capture, more: int, words: str) -> None:
    traced = msgspec.structs.replace(TRACED, sources=(source("a", runs=RUNS_SHOWN + more),))
    out, _ = told(capsys, traced)
    assert out.count("from its 7") == RUNS_SHOWN
    assert out.endswith(f"; {words}\n")


def test_other_forms_have_every_source(capsys: Capture) -> None:
    many = tuple(source(str(number)) for number in range(SHOWN + 2))
    out, _ = told(capsys, msgspec.structs.replace(TRACED, sources=many), Format.JSON)
    assert len(json.loads(out)["sources"]) == SHOWN + 2
