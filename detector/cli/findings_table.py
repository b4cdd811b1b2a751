"""The findings table: one row per finding and, below it, its id and the one plain sentence."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from detector.cli.output import show
from detector.cli.terminal import printable, width
from detector.cli.words import ENGINE

if TYPE_CHECKING:
    from rich.text import Text

    from detector.finding import Finding, Party

COLUMNS = ("SEVERITY", "CONFIDENCE", "RULE", "POOL", "SINK", "SOURCE", "TOKENS")
_FLEXIBLE = (3, 4, 5)
"""Columns that give way on a narrow terminal: pool, sink and source."""

_GAP = 2
_NARROWEST = 8
ROOM_FOR_REQUESTS = 100
"""Columns from which on sink and source show the request beside the tenant."""

NONE = "-"
"""Shown for tenants and tokens of a finding that has none."""

ID_SHOWN = 12
"""Characters of an id shown: 48 bits, unique within any one report, and enough for `explain`."""

STYLES = {
    "info": "dim",
    "low": "cyan",
    "medium": "yellow",
    "high": "bold red",
    "critical": "bold white on red",
}
"""Severity colours, the same wherever severities are shown."""


def gravest_first(findings: Sequence["Finding"]) -> list["Finding"]:
    """Return findings by severity, the highest first; equally grave ones by time."""
    return sorted(findings, key=lambda one: (-one.severity.rank, one.observed_at_ms))


def show_findings(findings: Sequence["Finding"]) -> None:
    """Print the table; findings keep their order."""
    from rich.text import Text

    name = name_of if width() >= ROOM_FOR_REQUESTS else tenant_of
    rows = [_cells(finding, name) for finding in findings]
    widths = _fit([COLUMNS, *rows], width())
    lines = [Text(_line(COLUMNS, widths), style="bold")]
    for finding, row in zip(findings, rows, strict=True):
        line = Text(_line(row, widths))
        line.stylize(STYLES[finding.severity.value], 0, len(row[0]))
        lines += [line, *_sentence(finding)]
    show(*lines)


def name_of(party: "Party") -> str:
    """`tenant/request`, the short name of one side of a finding; a dash where there is none."""
    if party.kind == ENGINE:
        return tenant_of(party)
    return printable(f"{party.tenant}/{party.request_id}")


def tenant_of(party: "Party") -> str:
    """Return the tenant alone, where there is no room: the sentence below names the request."""
    return printable(party.tenant) or NONE


def _cells(finding: "Finding", name: Callable[["Party"], str]) -> tuple[str, ...]:
    return (
        finding.severity.value,
        finding.confidence.value,
        printable(finding.rule),
        printable(finding.kv_pool),
        name(finding.sink),
        name(finding.source),
        f"{finding.evidence.unexplained_tokens:,}" if finding.is_content else NONE,
    )


def _sentence(finding: "Finding") -> list["Text"]:
    from rich.text import Text

    prefix = f"  {printable(finding.id[:ID_SHOWN])}  "
    text = Text(prefix + printable(finding.explanation))
    text.stylize("dim", 0, len(prefix))
    return list(_wrapped(text, width(), indent=len(prefix)))


def _wrapped(text: "Text", columns: int, *, indent: int) -> list["Text"]:
    """Lines of at most `columns`, all but the first indented."""
    from rich.console import Console
    from rich.text import Text

    lines: list[Text] = list(text.wrap(Console(width=columns), columns - indent))
    return [lines[0], *(Text(" " * indent) + line for line in lines[1:])]


def _fit(rows: Sequence[Sequence[str]], columns: int) -> list[int]:
    """Widths of the columns, the flexible ones shrunk evenly until a row fits."""
    from rich.cells import cell_len

    widths = [max(cell_len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    while sum(widths) + _GAP * (len(widths) - 1) > columns:
        widest = max(_FLEXIBLE, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    from rich.cells import set_cell_size

    fitted = [
        set_cell_size(_shortened(cell, columns), columns)
        for cell, columns in zip(cells, widths, strict=True)
    ]
    tokens = cells[-1].rjust(widths[-1])
    return (" " * _GAP).join([*fitted[:-1], tokens])


def _shortened(text: str, columns: int) -> str:
    """`text`, or its beginning and end with an ellipsis between."""
    from rich.cells import cell_len

    if cell_len(text) <= columns:
        return text
    head, tail = len(text) // 2, len(text) - len(text) // 2
    while head + tail > 0 and cell_len(text[:head]) + 1 + cell_len(text[-tail:]) > columns:
        head, tail = (head - 1, tail) if head >= tail else (head, tail - 1)
    return f"{text[:head]}…{text[-tail:] if tail else ''}"
