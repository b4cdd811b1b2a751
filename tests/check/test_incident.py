"""After a simulated incident: the blast radius, and notices that name nobody else."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from detector.finding import Party
from detector.model import Kind, RequestId, TenantId
from detector.notice import Touched
from detector.notice import notice as drafted
from tests.check.incident_store import LIMIT, SECRET, fill, findings, requests
from tests.e2e.program import Capture, call

TENANTS = ("acme", "globex", "initech", "umbrella")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return fill(tmp_path_factory.mktemp("store"))


def radius(capsys: Capture, store: tuple[str, str], *more: str) -> str:
    url, incident = store
    code, out, err = call(capsys, "blast-radius", incident, "--set", f"store.url={url}", *more)
    assert code == 0, err
    return out


def test_requests_of_the_incident_are_counted_by_tenant(
    capsys: Capture, store: tuple[str, str]
) -> None:
    document = json.loads(radius(capsys, store, "-o", "json"))
    assert document["requests"] == 4
    assert {one["tenant"]: one["requests"] for one in document["tenants"]} == dict.fromkeys(
        TENANTS, 1
    )
    (scope,) = document["scopes"]
    assert (scope["kv_pool"], scope["from_ms"], scope["until_ms"]) == ("long", 700_000, 1_020_000)
    assert "acme" in radius(capsys, store)
    lines = radius(capsys, store, "-o", "jsonl").splitlines()
    assert [json.loads(line)["requests"] for line in lines] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--longer-than", str(LIMIT)), {"src-bleed", "req-bleed"}),
        (("--contradicted",), {"req-bleed", "req-other"}),
        (("--engine", "engine-2"), set()),
        (("--from", "1970-01-01T00:00:00Z"), {one.request_id for one in requests()}),
        (("--until", "1970-01-01T00:16:35"), {"src-bleed"}),
    ],
)
def test_triggers_leave_those_that_fit(
    capsys: Capture, store: tuple[str, str], options: tuple[str, ...], expected: set[str]
) -> None:
    out = radius(capsys, store, *options, "--requests", "-o", "jsonl")
    assert {json.loads(line)["request_id"] for line in out.splitlines()} == expected


def test_a_spreadsheet_runs_nothing(capsys: Capture, store: tuple[str, str]) -> None:
    rows = list(csv.DictReader(io.StringIO(radius(capsys, store, "--requests", "-o", "csv"))))
    assert [row["request_id"] for row in rows] == [
        "src-bleed", "req-bleed", "'=cmd()", "req-other",
    ]  # fmt: skip
    assert rows[0]["prompt_tokens"] == "700000"


def test_requests_go_to_parquet_as_they_go_to_json(
    capsys: Capture, store: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "affected.parquet"
    assert radius(capsys, store, "--requests", "--file", str(file)) == ""
    written = pq.read_table(file)
    lines = radius(capsys, store, "--requests", "-o", "jsonl").splitlines()
    assert written.to_pylist() == [json.loads(line) for line in lines]
    assert [str(kind) for kind in written.schema.types] == [
        *["string"] * 5, *["int64"] * 4, "string", "int64", "string",
    ]  # fmt: skip
    assert not list(tmp_path.glob("*.new"))


def test_counts_and_nothing_at_all_go_to_parquet(
    capsys: Capture, store: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "counts.PARQUET"
    radius(capsys, store, "--file", str(file))
    assert pq.read_table(file).to_pydict() == {"tenant": [*TENANTS], "requests": [1, 1, 1, 1]}
    radius(capsys, store, "--engine", "none", "--requests", "-o", "parquet", "--file", str(file))
    empty = pq.read_table(file)
    assert (empty.num_rows, empty.num_columns) == (0, 12)


@pytest.mark.parametrize("name", ["affected.csv", "affected.jsonl", "affected.json"])
def test_the_name_of_a_file_says_the_form(
    capsys: Capture, store: tuple[str, str], tmp_path: Path, name: str
) -> None:
    file, form = tmp_path / name, name.rpartition(".")[2]
    listed = () if form == "json" else ("--requests",)
    assert radius(capsys, store, *listed, "--file", str(file)) == ""
    assert file.read_text() == radius(capsys, store, *listed, "-o", form)


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    capsys: Capture, store: tuple[str, str], tmp_path: Path
) -> None:
    taken = tmp_path / "there.parquet"
    taken.mkdir()
    code, out, err = call(
        capsys, "blast-radius", store[1], "--set", f"store.url={store[0]}", "--file", taken
    )
    assert (code, out) == (2, "")
    assert "there.parquet" in err
    assert [one.name for one in tmp_path.iterdir()] == ["there.parquet"]


def test_without_pyarrow_the_extra_is_named(
    capsys: Capture, store: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # what an installation without it does
    file = tmp_path / "affected.parquet"
    code, out, err = call(
        capsys, "blast-radius", store[1], "--set", f"store.url={store[0]}", "--file", file
    )
    assert (code, out) == (2, "")
    assert "Parquet needs pyarrow, which is not installed" in err
    assert "pip install 'bleedwatch[parquet]'" in err
    assert not file.exists()


def test_without_an_incident_a_pool_and_times_are_needed(
    capsys: Capture, store: tuple[str, str]
) -> None:
    setting = ("--set", f"store.url={store[0]}")
    code, _, err = call(capsys, "blast-radius", *setting, "--kv-pool", "long")
    assert (code, "of what?" in err) == (2, True)
    times = ("--from", "1970-01-01T00:01:00Z", "--until", "1970-01-01T00:02:00Z")
    _, out, _ = call(capsys, "blast-radius", *setting, "--kv-pool", "long", *times, "-o", "csv")
    assert out == "tenant,requests\numbrella,1\n"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("blast-radius", "no-such"), "there is no such incident"),
        (("blast-radius", "x", "--from", "yesterday"), "'yesterday' is no time"),
        (("blast-radius", "x", "--requests"), "requests are written line by line"),
        (("blast-radius", "x", "--requests", "-o", "json"), "requests are written line by line"),
        (("blast-radius", "x", "-o", "parquet"), "Parquet is no text for a terminal"),
        (("blast-radius", "x", "--file", "affected.xlsx"), "the name of the file says no form"),
        (("blast-radius", "x", "-o", "table", "--file", "x.csv"), "a table is for the terminal"),
        (("blast-radius", "x", "--kafka"), "Kafka knows no incidents, the store does"),
        (("blast-radius", "--kafka", "--kv-pool", "long"), "of what?"),
        (("notify-draft", "no-such", "acme"), "there is no such incident"),
    ],
)
def test_what_cannot_be_answered(
    capsys: Capture, store: tuple[str, str], arguments: tuple[str, ...], what: str
) -> None:
    code, out, err = call(capsys, *arguments, "--set", f"store.url={store[0]}")
    assert (code, out) == (2, "")
    assert what in err
    assert "  next: " in err


@pytest.mark.parametrize(
    "asked",
    [
        ("blast-radius", "inc-1"),
        ("blast-radius", "--kv-pool", "long", "--from", "1970-01-01", "--until", "1970-01-02"),
        ("notify-draft", "inc-1", "acme"),
    ],
)
def test_a_store_that_is_not_there_is_no_store_without_requests(
    capsys: Capture, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    url = f"sqlite:///{tmp_path}/typo.db"
    code, out, err = call(capsys, *asked, "--set", f"store.url={url}")
    assert (code, out) == (2, "")
    assert f"error: {url}: there is no such store" in err
    assert "next: set store.url to that of `run api`" in err
    assert list(tmp_path.iterdir()) == []


def notice(capsys: Capture, store: tuple[str, str], tenant: str) -> str:
    url, incident = store
    code, out, err = call(capsys, "notify-draft", incident, tenant, "--set", f"store.url={url}")
    assert code == 0, err
    assert incident in out
    return out


@pytest.mark.parametrize("tenant", TENANTS)
def test_a_notice_names_no_other_tenant_and_no_content(
    capsys: Capture, store: tuple[str, str], tenant: str
) -> None:
    out = notice(capsys, store, tenant)
    others = set(TENANTS) - {tenant}
    assert not [other for other in others if other in out]
    assert SECRET not in out
    own = {one.request_id for one in requests() if one.tenant == tenant} | {"src-traced"}
    foreign = {one.sink.request_id for one in findings()} | {
        one.source.request_id for one in findings()
    }
    assert not [name for name in foreign - own if name in out]


def test_a_notice_says_what_happened_to_whom_it_is_for(
    capsys: Capture, store: tuple[str, str]
) -> None:
    exposed = notice(capsys, store, "acme")
    assert "Content of yours may have been shown to others: text of a prompt" in exposed
    assert "system prompt, a conversation and the output of tools" in exposed
    assert "long enough to exclude chance" in exposed
    assert "`src-bleed` | 1970-01-01 00:16:39" in exposed
    received = notice(capsys, store, "globex")
    assert "1 answer to you may hold content that is not yours" in received
    assert "shown to others" not in received
    faulty = notice(capsys, store, "initech")
    assert "1 request was handled in a way in which answers can be wrong" in faulty
    traced = notice(capsys, store, "umbrella")
    assert "`src-traced`" in traced
    assert all("What is known, and what is not" in one for one in (exposed, received, faulty))


@pytest.mark.parametrize("name", ["<img src=x onerror=a()>", "[pay](http://evil.example)", "a`|b"])
def test_a_name_is_no_markup_of_a_notice(name: str) -> None:
    own = Party(
        tenant=TenantId(name), request_id=RequestId(name), kind=Kind.PROMPT,
        started_at_ms=0, ended_at_ms=0, prompt_tokens=1,
    )  # fmt: skip
    about = Touched((own,), (), (), is_sure=True, from_ms=0, until_ms=0)
    out = drafted("inc-1", name, about)
    outside = re.sub(r"`[^`\n]*`", "", out)
    assert not set("<>[]`") & set(outside)


def test_a_tenant_that_is_not_concerned_gets_no_notice(
    capsys: Capture, store: tuple[str, str]
) -> None:
    url, incident = store
    code, out, err = call(capsys, "notify-draft", incident, "hooli", "--set", f"store.url={url}")
    assert (code, out) == (2, "")
    assert "no finding of this incident is about that tenant" in err
    assert f"bleedwatch blast-radius {incident}" in err
