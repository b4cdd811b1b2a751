"""A finding about one engine: its id is that of rule, pool, engine, rank and beginning."""

from typing import NamedTuple

import xxhash

from detector.finding import NO_OVERLAP, Confidence, Finding, Party, Severity


class AboutEngine(NamedTuple):
    """Makes the findings about one engine."""

    kv_pool: str
    engine: str

    def finding(
        self,
        rule: str,
        since_ms: int,
        at_ms: int,
        sentence: str,
        numbers: dict[str, int | None],
        *,
        rank: int | None = None,
        severity: Severity = Severity.MEDIUM,
        confidence: Confidence = Confidence.HIGH,
        about: str = "",
    ) -> Finding:
        """Return the finding of an episode that began at `since_ms` and is told at `at_ms`.

        Both are times of the engine's clock. Numbers that are not known are left out. `about` is
        what tells it from another finding of the rule that began at the same time.
        """
        place = "" if rank is None else str(rank)
        parts = (rule, self.kv_pool, self.engine, place, str(since_ms))
        name = "\0".join((*parts, about) if about else parts)
        told = {**numbers, "rank": rank}
        engine = Party(
            tenant="", request_id="", kind="engine", started_at_ms=since_ms, ended_at_ms=at_ms
        )
        return Finding(
            id=xxhash.xxh3_128_hexdigest(name.encode()), rule=rule, severity=severity,
            confidence=confidence, kv_pool=self.kv_pool, engine=self.engine, model="",
            observed_at_ms=at_ms, detected_at_ms=at_ms, sink=engine, source=engine,
            other_sources=(), evidence=NO_OVERLAP, explanation=sentence,
            runtime={key: f"{value:,}" for key, value in told.items() if value is not None},
        )  # fmt: skip
