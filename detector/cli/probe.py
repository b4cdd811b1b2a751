"""`bleedwatch probe`: an active test of a running endpoint, before tenants use it."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, printable, write
from detector.cli.words import counted

if TYPE_CHECKING:
    from detector.check.verdict import Result
    from detector.probe.probing import Probed


class Api(enum.StrEnum):
    """The form of the requests."""

    OPENAI = "openai"
    SGLANG = "sglang"


class Form(enum.StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


@with_examples
def probe(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where requests are sent.")],
    engine_urls: Annotated[
        list[str] | None,
        typer.Option(
            "--engine-url",
            metavar="URL",
            help="An engine behind it, for limits and use of memory; repeatable [default: URL].",
        ),
    ] = None,
    api: Annotated[
        Api | None,
        typer.Option("--api", help="Form of requests [default: by the kind of engine]."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Model, if not the first.")
    ] = None,
    pool_tokens: Annotated[
        int | None,
        typer.Option(
            "--pool-tokens", metavar="N", min=1, help="Configured pool: lengths around it too."
        ),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option("--token-file", metavar="FILE", help="API key of tenant A.")
    ] = None,
    other_token_file: Annotated[
        str | None,
        typer.Option(
            "--other-token-file",
            metavar="FILE",
            help="API key of tenant B: keys, not salts, tell the tenants apart.",
        ),
    ] = None,
    ca_file: Annotated[
        str | None, typer.Option("--ca-file", metavar="FILE", help="Authorities to trust [PEM].")
    ] = None,
    skipped: Annotated[
        list[str] | None,
        typer.Option("--skip", metavar="CHECK", help="Leave out a check; repeatable."),
    ] = None,
    max_requests: Annotated[
        int, typer.Option("--max-requests", metavar="N", min=1, help="Requests sent at most.")
    ] = 600,
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", metavar="S", min=1, help="How long it runs at most.")
    ] = 900,
    settle_seconds: Annotated[
        float,
        typer.Option("--settle-seconds", metavar="S", min=0, help="Until memory must be free."),
    ] = 40,
    is_owned: Annotated[
        bool,
        typer.Option("--i-own-this-endpoint", help="Probe an endpoint on another machine."),
    ] = False,
    record: Annotated[
        str | None,
        typer.Option("--record", metavar="FILE", help="Write the result, for a sidecar [JSON]."),
    ] = None,
    save: options.SaveFindings = None,
    output: Annotated[
        Form, typer.Option("-o", "--output", help="How to write the result.")
    ] = Form.TABLE,
) -> None:
    """Test a running endpoint with requests of two tenants.

    Limits, refusals, memory that is given back, canaries.

    Not beside real traffic: it fills the pool. Exits 1 unless every check is passed.

    For example:
      bleedwatch probe http://127.0.0.1:30000 --record probe.json
      # a prefill/decode pair behind a router
      bleedwatch probe http://router:8000 --engine-url http://prefill:30000 --i-own-this-endpoint
    """
    from detector.cli.report import check_savable
    from detector.probe.probing import Given, check
    from detector.probe.probing import probe as probed_of
    from detector.probe.record import write_record

    for path in (save, record):
        if path is not None:
            check_savable(path)
    given = Given(
        url=url,
        engine_urls=engine_urls or (),
        api=None if api is None else api.value,
        model=model,
        token_file=token_file,
        other_token_file=other_token_file,
        ca_file=ca_file,
        pool_tokens=pool_tokens,
        skipped=skipped or (),
        max_requests=max_requests,
        max_seconds=max_seconds,
        settle_s=settle_seconds,
        is_owned=is_owned,
    )
    check(given)
    note(f"sending at most {max_requests:,} requests within {max_seconds:g} s to {printable(url)}")
    probed = probed_of(given, on_result=_write if output is Form.TABLE else lambda _: None)
    if record is not None:
        write_record(probed.record, record)
    _show(probed, output, save=save)
    if not probed.record.passed:
        raise typer.Exit(FINDINGS)


def _show(probed: "Probed", form: Form, *, save: str | None) -> None:
    import msgspec

    from detector.check.report import junit
    from detector.check.verdict import Verdict
    from detector.cli.report import save_findings

    if form is Form.JSON:
        write_document(msgspec.to_builtins(probed.record), Format.JSON)
    elif form is Form.JUNIT:
        write(junit(probed.results, suite="bleedwatch probe"))
    if save is not None:
        save_findings(probed.findings, save)
    counts = dict.fromkeys(Verdict, 0)
    for one in probed.results:
        counts[one.said.verdict] += 1
    told = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    note(f"{counted(probed.record.requests, 'request')}: {told}")
    if not probed.record.passed:
        note("  next: docs/probe.md says what each check means and what to do")


def _write(result: "Result") -> None:
    said = result.said
    write(f"{said.verdict.value}  {result.check}  {printable(said.found)}")
    if said.verdict.value != "pass":
        write(f"  {said.why}")
        if said.next_step:
            write(f"  next: {said.next_step}")
