"""`bleedwatch incidents`: asks the API for incidents, and tells it what people do about them."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.findings import client
from detector.cli.output import Format, show, write_document, write_rows
from detector.cli.terminal import note, printable, write

app = typer.Typer(no_args_is_help=True, help="Show incidents and act on them.")

_COLUMNS = ("id", "severity", "state", "kv_pool", "findings", "last_seen")

_Id = Annotated[str, typer.Argument(metavar="INCIDENT", help="Id of an incident.")]
_Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, or what you do; kept in its log.")
]


@app.command("list")
@with_examples
def list_incidents(
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="open, ongoing, reopened, resolved, merged; repeatable.",
        ),
    ] = None,
    tenant: options.OfTenant = None,
    rule: options.OfRule = None,
    severity: options.OfSeverity = None,
    kv_pool: options.OfPool = None,
    limit: options.MostRows = 50,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Show incidents, the last made first.

    Without --state those that are not resolved.

    For example:
      bleedwatch incidents list --kv-pool prod-1
    """
    asked = {
        "state": state or ["open", "ongoing", "reopened"],
        "tenant": tenant,
        "rule": rule,
        "severity": severity,
        "kv_pool": kv_pool,
    }
    with client(config, assignments) as api:
        found = list(api.rows("/v1/incidents", "incidents", asked, limit=limit))
    if output is Format.TABLE:
        _show(found)
    else:
        write_rows(found, output, columns=())


@app.command("show")
@with_examples
def show_incident(
    identifier: _Id,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Show one incident.

    The sentence, its gravest findings, and its log.

    For example:
      bleedwatch incidents show inc-3f9a1c2b4d5e6f708192a3b4c5d6e7f8
    """
    import msgspec

    from detector.cli.findings_table import show_findings
    from detector.finding import Finding

    with client(config, assignments) as api:
        found = api.get(_path(identifier))
    if output is not Format.TABLE:
        write_document(found, output)
        return
    one = found["incident"]
    write(printable(one["lead"]["explanation"]))
    write_rows([_row(one)], output, columns=_COLUMNS)
    write("")
    findings: list[Finding] = msgspec.convert(
        [listed["finding"] for listed in found["findings"]], list[Finding]
    )
    show_findings(findings)
    write("")
    changes = [{**change, "at": _instant(change["at_ms"])} for change in found["changes"]]
    write_rows(changes, output, columns=("at", "kind", "by", "reason"))


@app.command("ack")
@with_examples
def acknowledge(
    identifier: _Id,
    reason: _Reason = "",
    config: options.Config = None,
    assignments: options.Assignments = None,
) -> None:
    """Say that you take care of an incident.

    For example:
      bleedwatch incidents ack inc-3f9a1c2b4d5e6f708192a3b4c5d6e7f8 --reason "pool is drained"
    """
    with client(config, assignments) as api:
        told = api.send("POST", f"{_path(identifier)}/acknowledge", {"reason": reason})
    note(f"{printable(told['id'])} is taken by {printable(told['acknowledged_by'])}")


@app.command("resolve")
@with_examples
def resolve(
    identifier: _Id,
    reason: _Reason = "",
    config: options.Config = None,
    assignments: options.Assignments = None,
) -> None:
    """End an incident; news opens it again.

    For example:
      bleedwatch incidents resolve inc-3f9a1c2b4d5e6f708192a3b4c5d6e7f8 --reason "engine upgraded"
    """
    with client(config, assignments) as api:
        told = api.send("POST", f"{_path(identifier)}/resolve", {"reason": reason})
    note(f"{printable(told['id'])} is {told['state']}")


@app.command("silence")
@with_examples
def silence(
    identifier: _Id,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=43_200, help="For how long nothing is sent.")
    ] = 60,
    reason: _Reason = "",
    config: options.Config = None,
    assignments: options.Assignments = None,
) -> None:
    """Send nothing of an incident for a while.

    For example:
      bleedwatch incidents silence inc-3f9a1c2b4d5e6f708192a3b4c5d6e7f8 --minutes 480
    """
    with client(config, assignments) as api:
        body = {"minutes": minutes, "comment": reason}
        told = api.send("POST", f"{_path(identifier)}/silence", body)
    note(f"nothing is sent of it until {_instant(told['ends_at_ms'])} ({told['id']})")


@app.command("hold")
@with_examples
def hold(
    identifier: _Id,
    release: Annotated[
        bool, typer.Option("--release", help="Let retention and erasure have it again.")
    ] = False,
    config: options.Config = None,
    assignments: options.Assignments = None,
) -> None:
    """Keep an incident from retention and erasure.

    The requests around it are kept too.

    For example:
      bleedwatch incidents hold inc-3f9a1c2b4d5e6f708192a3b4c5d6e7f8
    """
    with client(config, assignments) as api:
        api.send("DELETE" if release else "PUT", f"{_path(identifier)}/hold")
    note("released" if release else "held")


@app.command("erase-tenant")
@with_examples
def erase_tenant(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Whose rows are to go.")],
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Erase what the store holds of a tenant.

    What a hold keeps stays.

    For example:
      bleedwatch incidents erase-tenant acme
    """
    with client(config, assignments) as api:
        gone = api.send("POST", "/v1/erasures", {"tenant": tenant})
    write_rows([gone], output, columns=tuple(gone))


def _path(identifier: str) -> str:
    return f"/v1/incidents/{quote(identifier, safe='')}"


def _row(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": one["id"],
        "severity": one["lead"]["severity"],
        "state": one["state"],
        "kv_pool": one["lead"]["kv_pool"],
        "findings": one["finding_count"],
        "last_seen": _instant(one["last_seen_ms"]),
    }


def _show(found: list[dict[str, Any]]) -> None:
    """Print of each how it stands, with how many findings where; its id whole; its sentence."""
    from rich.padding import Padding
    from rich.text import Text

    from detector.cli.findings_table import STYLES

    for one in found:
        row = _row(one)
        severity = Text(row["severity"].ljust(len("critical")), STYLES.get(row["severity"], ""))
        many = f"{row['findings']:,} finding" + "s" * (row["findings"] != 1)
        stands = f"  {row['state']:8}  {row['last_seen']}  {many} in "
        show(severity + stands + printable(row["kv_pool"]))
        told = Text(f"{row['id']}\n{printable(one['lead']['explanation'])}")
        show(Padding(told, (0, 0, 0, 2)))


def _instant(at_ms: int) -> str:
    from detector.cli.explain_steps import when

    return when(at_ms)
