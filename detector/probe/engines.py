"""The engines behind an endpoint, as they tell themselves: limits, use of the pool, cache hits."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from detector.check.engine import Engine, Told
from detector.check.limits import input_limit
from detector.doctor.engine_evidence import EngineEvidence, ask
from detector.errors import BleedwatchError, ScrapeError
from detector.probe.budget import Budget
from detector.probe.fingerprint import Fingerprint, fingerprint
from ingest.scrape.exposition import parse_exposition
from ingest.scrape.http import Answer, Endpoint
from ingest.scrape.mapping import load_mappings
from ingest.scrape.target import METRICS_PATH, Identity, Target

TIMEOUT_S: Final = 10.0
"""An engine answers from memory; one under load took two seconds at most."""

MAX_PAGE_BYTES: Final = 8 * 2**20

_REFRESH_MS: Final = 3_600_000
"""A probe is over before version and limits are asked again; a restart is noticed by counters."""

HITS: Final = ("vllm:prefix_cache_hits_total", "sglang:cached_tokens_total")
"""Prompt tokens that were found in the cache, since the engine's start."""


class CountedEndpoint(Endpoint):
    """An endpoint whose requests are those of the budget."""

    def __init__(
        self, url: str, budget: Budget, *, token_file: str | None, ca_file: str | None
    ) -> None:
        super().__init__(
            url,
            timeout_s=TIMEOUT_S,
            max_bytes=MAX_PAGE_BYTES,
            token_file=token_file,
            ca_file=ca_file,
        )
        self._budget = budget

    def get(self, path: str) -> Answer:
        """Return the answer to GET `path`. Raises BudgetError if it may not be asked."""
        self._budget.spend()
        return super().get(path)


class Usage(NamedTuple):
    """Tokens of the pools that are in use, cached ones nobody uses left out, and requests."""

    used_tokens: int
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What engines told of their sizes, in tokens; None is not told."""

    refused_from: int | None
    """Length of the shortest prompt that is refused, by the engine that refuses first."""
    pool_tokens: int | None
    """Of the smallest pool."""
    sizes: tuple[int, ...]
    """Every pool and context, once."""


class Engines:
    """The engines of one endpoint; those that tell nothing are problems, not errors."""

    def __init__(self, targets: Sequence[Target], *, pause: Callable[[float], None]) -> None:
        self._targets = targets
        self._pause = pause
        evidence = [ask(target, now_ms=_now_ms()) for target in targets]
        self.problems: list[BleedwatchError] = [
            one.problem for one in evidence if one.problem is not None
        ]
        self.kind = next((one.kind for one in evidence if one.kind), "")
        told = [_engine(one) for one in evidence if one.problem is None]
        self.limits = _limits(told)
        made = (fingerprint(*pair) for pair in zip(targets, evidence, strict=True))
        self.fingerprints: list[Fingerprint] = [one for one in made if one is not None]

    def usage(self) -> Usage | None:
        """Return what the pools hold now, None if an engine does not tell it."""
        used = requests = 0
        for target in self._targets:
            try:
                samples = target.samples(_now_ms())
            except BleedwatchError as error:
                if not isinstance(error, ScrapeError):
                    raise
                return None
            for one in samples:
                if one.used_tokens is None or one.running_requests is None:
                    return None
                used += one.used_tokens
                requests += one.running_requests + (one.queued_requests or 0)
        return Usage(used, requests)

    def settled(self, seconds: float, *, at_most: int | None = None) -> Usage | None:
        """Wait until nothing runs and no more than so much is used; return the last look.

        Looks at growing intervals, so that waiting costs few requests.
        """
        waited_s, step_s = 0.0, 0.25
        while True:
            usage = self.usage()
            if usage is None or (
                usage.requests == 0 and (at_most is None or usage.used_tokens <= at_most)
            ):
                return usage
            if waited_s >= seconds:
                return usage
            step_s = min(step_s, seconds - waited_s)
            self._pause(step_s)
            waited_s += step_s
            step_s *= 2

    def hits(self) -> int | None:
        """Return the prompt tokens found in caches so far, None if no engine counts them."""
        totals = []
        for target in self._targets:
            try:
                page = target.endpoint.get(METRICS_PATH).body
                series = parse_exposition(page, HITS.__contains__).samples
            except ScrapeError:
                continue
            totals += [one.value for name in HITS for one in series.get(name, ())]
        return int(sum(totals)) if totals else None


def engines_at(
    urls: Sequence[str],
    budget: Budget,
    *,
    token_file: str | None,
    ca_file: str | None,
    pause: Callable[[float], None] = time.sleep,
) -> Engines:
    """Ask the engines at some addresses what they are. Raises BudgetError, SettingsError."""
    mappings = load_mappings()
    targets = [
        Target(
            CountedEndpoint(url, budget, token_file=token_file, ca_file=ca_file),
            Identity(urlsplit(url).netloc, urlsplit(url).netloc),
            mappings,
            refresh_ms=_REFRESH_MS,
        )
        for url in urls
    ]
    return Engines(targets, pause=pause)


def _engine(evidence: EngineEvidence) -> Engine:
    samples = evidence.samples
    pools = [one.pool_tokens for one in samples if one.pool_tokens is not None]
    told = Told(min(pools, default=None), samples[0].context_tokens, samples[0].max_input_tokens)
    return Engine(
        name=evidence.engine, kind=evidence.kind or "", where=evidence.where, flags={}, told=told
    )


def _limits(engines: Sequence[Engine]) -> Limits:
    limits = [input_limit(one).value for one in engines if one.kind in ("vllm", "sglang")]
    pools = [one.told.pool_tokens for one in engines if one.told.pool_tokens]
    contexts = [one.told.context_tokens for one in engines if one.told.context_tokens]
    return Limits(
        refused_from=min((one for one in limits if one is not None), default=None),
        pool_tokens=min(pools, default=None),
        sizes=tuple(sorted({*pools, *contexts})),
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
