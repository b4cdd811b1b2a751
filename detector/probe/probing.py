"""Composition of a probe: from what a user gives to results, a record, and findings."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from detector.check.report import row
from detector.check.verdict import Result
from detector.errors import InputError, UsageError
from detector.finding import Finding
from detector.probe.asking import UNTRUSTED, Access, Asker, Heard
from detector.probe.bench import A, B, Bench
from detector.probe.budget import Budget
from detector.probe.dialects import SGLANG, Dialect, openai
from detector.probe.engines import Engines, engines_at
from detector.probe.ownership import check_owned
from detector.probe.plan import NAMES, is_passed, run
from detector.probe.record import Record
from detector.rules.canary import Surfacing, canary_echoed
from ingest.scrape.http import read_token

HELLO_TOKENS: Final = 16
"""Of the first prompt, which tells whether anybody answers."""

_HINTS: Final = {
    401: "name the file of its key with --token-file",
    403: "name the file of its key with --token-file",
    404: "choose the form of its requests with --api, and the model with --model",
}


@dataclass(frozen=True, kw_only=True)
class Given:
    """What is probed, and what the probe may use. `apis` are openai and sglang."""

    url: str
    engine_urls: Sequence[str] = ()
    api: str | None = None
    model: str | None = None
    token_file: str | None = None
    other_token_file: str | None = None
    ca_file: str | None = None
    pool_tokens: int | None = None
    skipped: Sequence[str] = ()
    max_requests: int = 600
    max_seconds: float = 900.0
    settle_s: float = 40.0
    is_owned: bool = False
    rng: Random = field(default_factory=SystemRandom)
    pause: Callable[[float], None] = time.sleep


class Probed(NamedTuple):
    """What a probe has found."""

    results: list[Result]
    record: Record
    findings: list[Finding]


def probe(given: Given, *, on_result: Callable[[Result], None] = lambda _: None) -> Probed:
    """Run the checks against an endpoint.

    Raises UsageError for what cannot be obeyed, InputError for an endpoint that does not answer,
    SettingsError for keys or authorities that cannot be read, BudgetError if not even a first
    answer fits the budget.
    """
    started_ms = _now_ms()
    check(given)
    budget = Budget(requests=given.max_requests, seconds=given.max_seconds)
    engines = engines_at(
        given.engine_urls or (given.url,),
        budget,
        token_file=given.token_file,
        ca_file=given.ca_file,
        pause=given.pause,
    )
    bench = _bench(given, engines, budget)
    results = []
    for result in run(bench, skipped=given.skipped):
        on_result(result)
        results.append(result)
    record = Record(
        url=given.url,
        started_at_ms=started_ms,
        ended_at_ms=_now_ms(),
        passed=is_passed(results),
        requests=budget.used,
        skipped=list(given.skipped),
        configurations=engines.fingerprints,
        checks=[row(one) for one in results],
    )
    return Probed(results, record, _findings(bench, record))


def check(given: Given) -> None:
    """Raise UsageError for what cannot be obeyed; nothing is asked yet."""
    check_owned((given.url, *given.engine_urls), is_owned=given.is_owned)
    unknown = next((name for name in given.skipped if name not in NAMES), None)
    if unknown is not None:
        hint = f"one of {', '.join(NAMES)}"
        raise UsageError(f"no check is called {unknown[:40]!r}", where="--skip", hint=hint)


def _bench(given: Given, engines: Engines, budget: Budget) -> Bench:
    own, other = (
        None if file is None else read_token(file)
        for file in (given.token_file, given.other_token_file or given.token_file)
    )
    access = Access(given.url, (own, other), given.ca_file)
    asker = Asker(access, _dialect(given, engines), budget)
    bench = Bench(
        asker=asker,
        engines=engines,
        rng=given.rng,
        pool_tokens=given.pool_tokens,
        settle_s=given.settle_s,
        has_salts=given.other_token_file is None,
        where=urlsplit(given.url).netloc,
    )
    for tenant in (A, B):
        _greet(bench, tenant)
    return bench


def _dialect(given: Given, engines: Engines) -> Dialect:
    if given.api == "sglang" or (given.api is None and engines.kind == "sglang"):
        return SGLANG
    model = given.model or next((one.model for one in engines.fingerprints if one.model), "")
    return openai(model)


def _greet(bench: Bench, tenant: int) -> None:
    """Ask something short; who does not answer that is not probed."""
    heard: Heard = bench.ask(tenant, bench.canaries.other(HELLO_TOKENS), 1)
    if heard.is_answered and heard.answer is not None:
        return
    what = heard.told if not heard.is_answered else "the answer is not that of an engine"
    raise InputError(
        f"a short prompt was {what}" if not heard.is_answered else what,
        where=bench.where,
        hint=_hint(heard),
    )


def _hint(heard: Heard) -> str:
    if heard.lost == UNTRUSTED:
        return "name the file of its authority with --ca-file, or check that the port speaks TLS"
    return _HINTS.get(heard.status or 0, "check that an engine runs there, and its port")


def _findings(bench: Bench, record: Record) -> list[Finding]:
    engine = bench.where
    return [
        canary_echoed(
            Surfacing(
                check=one.check,
                request_id=one.request_id or f"answer-{number}",
                prompt_tokens=one.prompt_tokens,
                answer_tokens=one.answer_tokens,
                runs=tuple((echo.start, echo.length) for echo in one.echoes),
            ),
            engine=engine,
            started_at_ms=record.started_at_ms,
            ended_at_ms=record.ended_at_ms,
        )
        for number, one in enumerate(bench.surfaced)
    ]


def _now_ms() -> int:
    return int(time.time() * 1000)
