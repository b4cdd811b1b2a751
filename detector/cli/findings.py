"""`bleedwatch findings`: asks the API for findings, and tells it what people decide about them."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, show, write_document, write_rows

if TYPE_CHECKING:
    from detector.cli.api_client import ApiClient

app = typer.Typer(no_args_is_help=True, help="Show stored findings and judge them.")


class Verdict(enum.StrEnum):
    """What somebody decides about a finding."""

    CONFIRMED = "confirmed"
    FALSE_POSITIVE = "false_positive"
    NONE = "none"


_Id = Annotated[str, typer.Argument(metavar="FINDING", help="Id of a finding.")]


def client(config: str | None, assignments: list[str] | None) -> "ApiClient":
    """Return a client of the API that the settings name."""
    from detector.cli.api_client import ApiClient
    from detector.config.load import load_settings

    return ApiClient(load_settings(config, assignments=assignments or ()).settings.client)


@app.command("list")
@with_examples
def list_findings(
    tenant: options.OfTenant = None,
    rule: options.OfRule = None,
    severity: options.OfSeverity = None,
    kv_pool: options.OfPool = None,
    incident: Annotated[
        str | None, typer.Option("--incident", metavar="ID", help="Of this incident only.")
    ] = None,
    limit: options.MostRows = 50,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Show findings, the last detected first.

    For example:
      bleedwatch findings list --tenant acme --severity high
    """
    import msgspec

    from detector.cli.findings_table import show_findings
    from detector.finding import Finding

    asked = {
        "tenant": tenant,
        "rule": rule,
        "severity": severity,
        "kv_pool": kv_pool,
        "incident_id": incident,
    }
    with client(config, assignments) as api:
        found = list(api.rows("/v1/findings", "findings", asked, limit=limit))
    if output is Format.TABLE:
        show_findings([msgspec.convert(one["finding"], Finding) for one in found])
    else:
        write_rows(found, output, columns=())


@app.command("show")
@with_examples
def show_finding(
    identifier: _Id,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Say why a finding is one.

    Step by step, and what was decided about it.

    For example:
      bleedwatch findings show 3f9a1c2b4d5e6f708192a3b4c5d6e7f8
    """
    import msgspec

    from detector.cli.explain import explained
    from detector.cli.terminal import note, printable
    from detector.finding import Finding

    with client(config, assignments) as api:
        found = api.get(f"/v1/findings/{_quoted(identifier)}")
    if output is not Format.TABLE:
        write_document(found, output)
        return
    show(*explained(msgspec.convert(found["finding"], Finding)))
    by = f" by {printable(found['verdict_by'])}" if found["verdict_by"] else ""
    note(f"verdict: {found['verdict']}{by}; incident: {found['incident_id'] or 'none'}")


@app.command("verdict")
@with_examples
def give_verdict(
    identifier: _Id,
    verdict: Annotated[Verdict, typer.Argument(help="What you decide; none takes it back.")],
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Say whether a finding is a bleed.

    It counts in the precision of its rule.

    For example:
      bleedwatch findings verdict 3f9a1c2b4d5e6f708192a3b4c5d6e7f8 false_positive
    """
    with client(config, assignments) as api:
        path = f"/v1/findings/{_quoted(identifier)}/verdict"
        told = api.send("PUT", path, {"verdict": verdict.value})
    write_rows([told], output, columns=("finding_id", "verdict", "by"))


@app.command("allow-list")
@with_examples
def allow_list(
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Write to a file, not to stdout.")
    ] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
) -> None:
    """Write what was judged to be no bleed, hashed.

    Workers read the file at their start (`detection.filter.allow_lists`) and find no runs of it any
    more. It holds keyed digests, no text and no token ids.

    For example:
      bleedwatch findings verdict 3f9a1c2b4d5e6f708192a3b4c5d6e7f8 false_positive
      bleedwatch findings allow-list --save judged.jsonl
    """
    from detector.cli.allow_list_file import write_lines
    from detector.cli.terminal import note

    with client(config, assignments) as api:
        written = write_lines(api, save)
    note(f"{written.findings} findings, {written.shingles} shingles")
    if written.without:
        note(f"{written.without} more were judged false positives and have no digests")


def _quoted(identifier: str) -> str:
    from urllib.parse import quote

    return quote(identifier, safe="")
