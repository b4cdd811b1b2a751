"""How the outcome of a look-back is shown: sources with their runs, then what was searched."""

from typing import TYPE_CHECKING

from detector.cli.explain_steps import when
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, printable, write
from detector.cli.words import counted

if TYPE_CHECKING:
    from detector.trace.model import ProbableSource, Traced

SHOWN = 20
"""Sources listed for people; the other forms have all of them."""

RUNS_SHOWN = 3
"""Runs listed of each."""


def show_traced(traced: "Traced", output: Format) -> None:
    """Write the outcome to stdout, and what was searched to stderr."""
    if output is Format.TABLE:
        write("\n".join(line for one in traced.sources[:SHOWN] for line in _lines(one)))
    else:
        import msgspec

        write_document(msgspec.to_builtins(traced), output)
    for line in _notes(traced):
        note(line)


def _lines(source: "ProbableSource") -> list[str]:
    """Two lines, not a table: ids stay whole, so that they can be copied."""
    party = source.party
    runs = [
        f"{run.length} tokens at {run.sink_start:,} from its {run.source_start:,}"
        for run in source.runs[:RUNS_SHOWN]
    ]
    more = len(source.runs) - len(runs)
    if more:
        runs.append(f"{counted(more, 'more run')}")
    return [
        f"{source.confidence.value:6}  {printable(party.tenant)}/{printable(party.request_id)}  "
        f"{party.kind}, {counted(source.unexplained_tokens, 'token')} unexplained",
        f"        began {when(party.started_at_ms)}; {'; '.join(runs)}",
    ]


def _notes(traced: "Traced") -> list[str]:
    scanned, explained = traced.scanned, traced.explained
    found = counted(len(traced.sources), "probable source")
    lines = [
        f"{found} of the {counted(traced.response_tokens, 'token')} of {traced.sink.request_id} "
        f"(tenant {traced.sink.tenant}, pool {traced.kv_pool})",
        f"searched: {counted(scanned.sequences, 'prompt or response', 'prompts and responses')}, "
        f"{counted(scanned.tokens, 'token')}{_span(traced)}",
        f"shingles of the response that name nobody: {explained.own_prompt:,} own prompt, "
        f"{explained.own_history:,} own history, {explained.common:,} common, "
        f"{explained.low_complexity:,} low complexity",
    ]
    if len(traced.sources) > SHOWN:
        lines.append(f"{len(traced.sources) - SHOWN:,} more sources with -o json")
    if traced.dropped:
        lines.append(f"{traced.dropped:,} weaker sources were let go")
    if scanned.other_keys:
        lines.append(f"{scanned.other_keys:,} sequences under another secret were not compared")
    if scanned.unreadable:
        lines.append(f"{scanned.unreadable:,} entries could not be read")
    if not traced.is_complete:
        lines.append("not all was searched: the broker fell silent; try again")
    return lines


def _span(traced: "Traced") -> str:
    first, last = traced.scanned.first_ms, traced.scanned.last_ms
    return "" if first is None or last is None else f", from {when(first)} to {when(last)}"
