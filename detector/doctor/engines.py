"""Checks of the engines that a sidecar asks: what they answer, what they hide, their clocks."""

from collections.abc import Iterator
from typing import Final

from detector.doctor.engine_evidence import EngineEvidence
from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level, Verdict
from detector.errors import SettingsError
from ingest.schema_records import EngineRole, Quality, RuntimeSample

SKEW_S: Final = 2.0
"""Difference of clocks that is told: answers tell whole seconds, and hold is below a second."""

_METRICS_OFF: Final = {
    "sglang": "start SGLang with --enable-metrics",
    "vllm": "start vLLM without --disable-log-stats",
}

_WANTED: Final = ("pool_tokens", "context_tokens", "used_tokens", "pool_usage_ratio")


def metrics(facts: Facts) -> Iterator[Verdict]:
    """Every engine tells its metrics, and with them what is not released."""
    try:
        engines = facts.engines
    except SettingsError as error:
        yield Verdict(Level.ERROR, error.where, error.what, error.hint)
        return
    if not engines:
        yield Verdict(
            Level.WARNING,
            "scrape.targets",
            "no engine is asked for its state: leaks of KV memory are not seen",
            "add the address of each engine, such as {url: http://127.0.0.1:8000}",
        )
    for engine in engines:
        yield from _state(engine)


def _state(engine: EngineEvidence) -> Iterator[Verdict]:
    if engine.problem is not None:
        reason = getattr(engine.problem, "reason", "")
        is_off = reason in ("not_found", "unrecognized")
        hint = _METRICS_OFF.get(engine.kind or "", "") if is_off else ""
        if is_off and not hint:
            hint = "; ".join([*_METRICS_OFF.values(), engine.problem.hint])
        found = f"{engine.where}: {engine.problem.what}"
        yield Verdict(Level.ERROR, engine.engine, found, hint or engine.problem.hint)
        return
    for path, problem in engine.endpoint_problems.items():
        if problem.reason == "not_found" and path != "/metrics":
            continue  # another version has another name for it
        hint = _METRICS_OFF.get(engine.kind or "", "") if path == "/metrics" else problem.hint
        yield Verdict(Level.WARNING, engine.engine, f"{path}: {problem.what}", hint)
    for sample in engine.samples:
        yield _seen(engine, sample)


def _seen(engine: EngineEvidence, sample: RuntimeSample) -> Verdict:
    lacking = [name for name in _WANTED if getattr(sample, name) is None]
    rank = "" if sample.rank is None else f" rank {sample.rank}"
    what = f"{sample.engine_kind} {sample.engine_version or '(version unknown)'}{rank}"
    if lacking:
        found = f"{what} does not tell {', '.join(lacking)}"
        return Verdict(Level.WARNING, engine.engine, found, "see docs/runtime-metrics.md")
    quality = sample.unreleased_quality or Quality.UNKNOWN
    busy = ", under load" if sample.running_requests else ""
    return Verdict(Level.OK, engine.engine, f"{what}; unreleased tokens {quality.value}{busy}")


def flags(facts: Facts) -> Iterator[Verdict]:
    """No flag hides what could be seen, as far as the engine tells its flags."""
    for engine in _asked(facts):
        visibility = facts.visibility.get(engine.kind or "")
        if visibility is None or engine.problem is not None:
            continue
        told = [
            (flag, flag.told)
            for flag in visibility.flags
            if flag.told is not None
            and flag.told.field in engine.flags
            and flag.holds_for(engine.version)
        ]
        if not told:
            hint = f"bleedwatch doctor --flags {engine.kind}"
            hint += f"={engine.version}" if engine.version else ""
            found = "it does not tell its flags; its log shows what is missing"
            yield Verdict(Level.UNKNOWN, engine.engine, found, hint)
            continue
        wrong = [flag for flag, at in told if not at.is_right(engine.flags[at.field])]
        for flag in wrong:
            level = Level.WARNING if flag.is_needed else Level.OK
            hint = f"start it with {flag.flag}; costs: {flag.costs}"
            yield Verdict(level, engine.engine, f"not seen: {flag.shows}", hint)
        if not any(flag.is_needed for flag in wrong):
            yield Verdict(Level.OK, engine.engine, f"{len(told)} flags looked at, none hides much")


def clock(facts: Facts) -> Iterator[Verdict]:
    """The clocks of the engines agree with ours."""
    for engine in _asked(facts):
        ahead_s = engine.clock_ahead_s
        if ahead_s is None:
            continue
        if abs(ahead_s) <= SKEW_S:
            yield Verdict(Level.OK, engine.engine, "its clock agrees with ours, to a second")
            continue
        is_refused = ahead_s * 1000 > facts.settings.stream.ahead_ms
        word = "ahead of" if ahead_s > 0 else "behind"
        yield Verdict(
            Level.ERROR if is_refused else Level.WARNING,
            engine.engine,
            f"its clock is {abs(ahead_s):,.0f} s {word} ours: requests are put in a wrong order",
            "let a time service set the clocks of all nodes",
        )


def pools(facts: Facts) -> Iterator[Verdict]:
    """Engines that share KV memory are told to be one pool."""
    settings = facts.settings
    for engine, target in zip(_asked(facts), settings.scrape.targets, strict=False):
        roles = {sample.role for sample in engine.samples}
        named = target.kv_pool or settings.sidecar.kv_pool
        if roles & {EngineRole.PREFILL, EngineRole.DECODE} and named is None:
            yield Verdict(
                Level.WARNING,
                engine.engine,
                "it shares KV memory with others, and is a pool of its own here: nothing is "
                "compared across them",
                "give all engines of the group the same sidecar.kv_pool",
            )


def _asked(facts: Facts) -> list[EngineEvidence]:
    """Return the engines; none if the targets cannot be used, which another check tells."""
    try:
        return facts.engines
    except SettingsError:
        return []
