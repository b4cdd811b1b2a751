"""A running engine, as its metrics and info endpoints tell it: asked once, within bounds."""

import time
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from detector.advisories.arguments import told_arguments
from detector.check.engine import OFF, Engine, Flag, Told
from detector.doctor.engine_evidence import EngineEvidence, ask
from detector.errors import InputError, ScrapeError, UsageError
from ingest.schema_records import EngineRole
from ingest.scrape.scraper import make_scraper
from ingest.scrape.settings import ScrapeSettings, TargetSettings

TIMEOUT_MS: Final = 10_000
"""An engine answers from memory; one under load took two seconds at most."""

_NEXT: Final = {
    "tls": "name the file of its authority with --ca-file, or check that the port speaks TLS",
    "unreachable": "check that the engine runs, and the host and port of --url",
    "timed_out": "ask it when it is less busy, or check its files instead",
    "unauthorized": "name the file of its key with --token-file",
    "not_found": "start SGLang with --enable-metrics, vLLM without --disable-log-stats",
    "too_large": "name the engine itself, not a page that gathers the metrics of many",
    "redirected": "name the engine itself, not a proxy before it",
}
_ROLES: Final = {EngineRole.PREFILL: "prefill", EngineRole.DECODE: "decode"}


def engine_at(url: str, *, token_file: str | None, ca_file: str | None) -> Engine:
    """Return the engine that answers at an address.

    Raises UsageError for what is no address, InputError for one that gives no usable answer,
    SettingsError for a token file or authorities that cannot be used.
    """
    evidence = _asked(url, token_file=token_file, ca_file=ca_file)
    sample = evidence.samples[0]
    samples = evidence.samples
    return Engine(
        name=f"engine {evidence.where}",
        kind=evidence.kind or "",
        where=evidence.where,
        flags=_flags(evidence.flags, evidence.where),
        role=_ROLES.get(sample.role, "") if sample.role is not None else "",
        version=evidence.version,
        told=Told(
            min((one.pool_tokens for one in samples if one.pool_tokens is not None), default=None),
            sample.context_tokens,
            sample.max_input_tokens,
        ),
        unseen=() if evidence.flags else (f"{evidence.kind} does not tell its flags",),
    )


def _asked(url: str, *, token_file: str | None, ca_file: str | None) -> EngineEvidence:
    try:
        target = TargetSettings(url=url, token_file=token_file, ca_file=ca_file)
    except ValidationError:
        raise UsageError(
            "no address of an engine",
            where="--url",
            hint="scheme, host and port alone, such as http://127.0.0.1:8000",
        ) from None
    scrape = ScrapeSettings(targets=(target,), timeout_ms=TIMEOUT_MS)
    (asked,) = make_scraper(scrape).targets
    evidence = ask(asked, now_ms=int(time.time() * 1000))
    problem = evidence.problem
    if isinstance(problem, ScrapeError):
        hint = _NEXT.get(problem.reason, "name the port of an engine with --url")
        raise InputError(problem.what, where=problem.where or evidence.where, hint=hint)
    if problem is not None:
        raise problem
    return evidence


def _flags(told: Mapping[str, object], where: str) -> dict[str, Flag]:
    """Return the flags that are on or have a value; those that are off are as good as absent."""
    return {
        name: Flag(values, where)
        for name, values in told_arguments(told).items()
        if not values or values[0].lower() not in OFF
    }
