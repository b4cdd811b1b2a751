"""What the checklist rests on besides checks of a configuration: versions, the monitor, a probe."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from detector.advisories.assess import Deployment, assess
from detector.advisories.assess import Verdict as Applies
from detector.advisories.features import Known
from detector.advisories.load import advisories, features
from detector.advisories.versions import parse_version
from detector.check.checklist import MONITOR, PROBE, VERSION
from detector.check.engine import Engine
from detector.check.scope import Scope
from detector.check.verdict import Result, Said, Verdict, passed
from detector.errors import InputError, ScrapeError, UsageError
from ingest.scrape.http import Endpoint

READY: Final = "/readyz"
TIMEOUT_S: Final = 5.0
"""A process answers from memory."""

MAX_BYTES: Final = 4 * 1024 * 1024

_STATED: Final = {"text-only": ("multimodal", False), "request-ids": ("client_request_ids", False)}
"""What words of --vouch say of the features that advisories ask for."""


def versions(scope: Scope, results: Sequence[Result]) -> Iterator[Result]:
    """Say of every engine which advisories apply to its version and flags."""
    for engine in scope.engines:
        yield Result(VERSION, engine.name, _of_version(engine, scope, results))


def _of_version(engine: Engine, scope: Scope, results: Sequence[Result]) -> Said:
    version = parse_version(engine.version)
    if version is None:
        return Said(
            Verdict.UNKNOWN,
            f"the version of {engine.kind} is not known",
            engine.where,
            "faults of the isolation of tenants are known of many releases",
            "name a release in the image, or state --version",
        )
    arguments = {name: flag.values for name, flag in engine.flags.items()}
    deployment = Deployment(engine.kind, version, arguments, _facts(engine, scope, results))
    found = assess(advisories(), deployment, features())
    running = f"{engine.kind} {version}"
    for wanted, verdict in ((Applies.APPLIES, Verdict.FAIL), (Applies.MAY_APPLY, Verdict.WARN)):
        names = [one.advisory.id for one in found if one.verdict is wanted]
        if names:
            word = "apply" if verdict is Verdict.FAIL else "may apply"
            return Said(
                verdict,
                f"{running}: {', '.join(names)} {word}",
                engine.where,
                "each of them is a known way from one tenant to another",
                f"see `bleedwatch check version --engine {engine.kind} --version {version}`",
            )
    return passed(f"{running}: none of {len(found)} advisories applies", engine.where)


def _facts(engine: Engine, scope: Scope, results: Sequence[Result]) -> dict[str, Known]:
    known = features()[engine.kind]
    facts = {
        name: Known(is_used, f"stated: {word}")
        for word, (name, is_used) in _STATED.items()
        if scope.vouches(word) and name in known
    }
    limits = [one for one in results if one.check == "input-limits" and one.engine == engine.name]
    verdicts = {one.said.verdict for one in limits}
    if "lower_prefill_limit" in known and Verdict.FAIL in verdicts:
        facts["lower_prefill_limit"] = Known(True, limits[0].said.found)
    elif "lower_prefill_limit" in known and verdicts == {Verdict.PASS}:
        facts["lower_prefill_limit"] = Known(False, limits[0].said.found)
    return facts


def monitors(urls: Sequence[str]) -> Iterator[Result]:
    """Ask processes of the monitor whether they are ready. Raises UsageError for no address."""
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            hint = "scheme, host and metrics port, such as http://bleedwatch-worker:9464"
            raise UsageError("no address of a process", where="--monitor", hint=hint)
        endpoint = Endpoint(url, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)
        try:
            endpoint.get(READY)
            said = passed("it says that it is ready", f"{endpoint.name}{READY}")
        except ScrapeError as error:
            why = "what happens now is not looked at"
            where = f"{endpoint.name}{READY}"
            said = Said(Verdict.FAIL, error.what, where, why, "start it, and look at its log")
        yield Result(MONITOR, f"process {endpoint.name}", said)


def probed(path: str) -> Iterator[Result]:
    """Return what a probe found, from the file that `bleedwatch probe --record FILE` wrote.

    Raises InputError for a file that is none.
    """
    refused = InputError(
        "no result of a probe", where=path, hint="bleedwatch probe URL --record FILE writes one"
    )
    with Path(path).open("rb") as stream:
        content = stream.read(MAX_BYTES)
    try:
        document = json.loads(content)
        skipped = [str(name) for name in document["skipped"]]
        verdicts = [(str(row["check"]), Verdict(row["verdict"]), row) for row in document["checks"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise refused from None
    if not verdicts:
        raise refused
    for check, verdict, row in verdicts:
        if verdict is not Verdict.PASS:
            said = Said(
                verdict,
                f"{check}: {row.get('found', '')}",
                path,
                str(row.get("why", "")),
                str(row.get("next_step", "")),
            )
            yield Result(PROBE, str(row.get("engine", "")), said)
    if skipped:
        why = "what was left out is not known to hold"
        said = Said(Verdict.WARN, f"left out: {', '.join(skipped)}", path, why, "run them too")
        yield Result(PROBE, path, said)
    good = sum(verdict is Verdict.PASS for _, verdict, _ in verdicts)
    if good:
        yield Result(PROBE, path, passed(f"{good} of {len(verdicts)} tests passed", path))
