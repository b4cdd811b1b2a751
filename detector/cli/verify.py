"""`bleedwatch verify`: the owner of a text looks whether it is what a finding rests on."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_document
from detector.cli.terminal import note

if TYPE_CHECKING:
    from detector.config.root import Settings
    from detector.finding import Digests
    from detector.verifying import Verified

MOST_STRETCHES = 20
"""Stretches that are named; -o json has them all."""


@with_examples
def verify(
    identifier: Annotated[
        str, typer.Argument(metavar="FINDING", help="Id of a finding; with --from its beginning.")
    ],
    text: Annotated[
        str | None, typer.Option("--text", metavar="FILE", help="The text, as UTF-8.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer", metavar="PATH", help="tokenizer.json of the model, with --text."
        ),
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", metavar="FILE", help="Its token ids, as a JSON list.")
    ] = None,
    findings: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="Findings as JSON lines; without it the API."),
    ] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Say whether a text of yours is what a finding rests on.

    The text is hashed here and compared with the keyed digests of the finding: nothing of it is
    sent, written or shown. Exits 1 if it holds none of what was found.

    For example:
      bleedwatch verify 3f9a1c2b4d5e --from findings.jsonl --ids ids.json --key-file secret.key
      # ask the API for the digests, and let the tokenizer of the model read the text
      bleedwatch verify 3f9a1c2b4d5e6f708192a3b4c5d6e7f8 --text prompt.txt --tokenizer model/
    """
    import msgspec

    from detector.config.load import load_settings
    from detector.verifying import keys_named
    from detector.verifying import verify as compared

    mine = _token_ids(text, tokenizer, ids)
    settings = load_settings(config, assignments=assignments or (), key_file=key_file).settings
    digests = _digests(identifier, findings, settings)
    files = [settings.key_file] if settings.key_file else []
    keys = keys_named(digests.key, (*files, *settings.sealing.accepted_key_files))
    found = compared(mine, digests, keys)
    if output is Format.TABLE:
        note(_sentence(found))
    else:
        write_document(msgspec.to_builtins(found), output)
    raise typer.Exit(0 if found.held else 1)


def _token_ids(text: str | None, tokenizer: str | None, ids: str | None) -> list[int]:
    from detector.errors import UsageError
    from ingest.text_ids import listed_ids, text_ids

    if (text is None) == (ids is None):
        raise UsageError("either a text or its token ids", hint="give --text FILE or --ids FILE")
    if ids is not None:
        return listed_ids(ids)
    if tokenizer is None:
        raise UsageError(
            "a text needs the tokenizer of the model",
            where="--text",
            hint="--tokenizer PATH names its tokenizer.json, or the folder that holds it",
        )
    return text_ids(str(text), tokenizer)


def _digests(identifier: str, findings: str | None, settings: "Settings") -> "Digests":
    """Return the digests of the finding; raises UsageError if there are none."""
    from detector.cli.finding_file import find
    from detector.errors import UsageError

    if findings is None:
        return _asked(identifier, settings)
    finding = find(identifier, findings)
    if finding.digests is None:
        raise UsageError(
            f"finding {finding.id} of {finding.rule} has no digests",
            where=findings,
            hint="only runs of tokens have them, found where key_file was set",
        )
    return finding.digests


def _asked(identifier: str, settings: "Settings") -> "Digests":
    from urllib.parse import quote

    import msgspec

    from detector.cli.api_client import ApiClient
    from detector.finding import Digests

    with ApiClient(settings.client) as api, api.understood():
        told = api.get(f"/v1/findings/{quote(identifier, safe='')}/digests")
        return msgspec.convert({"key": told["key"], "shingles": told["shingles"]}, Digests)


def _sentence(found: "Verified") -> str:
    share = f"{found.held:,} of the {found.shingles:,} shingles that the finding rests on"
    if not found.held:
        return f"the text holds none of the {found.shingles:,} shingles that the finding rests on"
    named = [f"{one.start:,} to {one.end - 1:,}" for one in found.stretches[:MOST_STRETCHES]]
    more = len(found.stretches) - MOST_STRETCHES
    where = ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
    return f"the text holds {share}: its tokens {where} (of {found.tokens:,})"
