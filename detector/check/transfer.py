"""Checks of prefill and decode apart: who rejects first, what is compared, when memory is freed."""

from collections.abc import Iterator
from typing import Final

from detector.check.engine import OFF, Engine
from detector.check.limits import Figure, input_limit
from detector.check.scope import Scope
from detector.check.verdict import Said, Verdict, passed
from detector.runtime.limits import INPUT_MARGIN

DEFERRED: Final = "SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE"
DEFERRED_SINCE: Final = "0.5.19"
DEFERRED_BY_DEFAULT: Final = "0.5.21"
CHECKSUM: Final = "disaggregation-enable-kv-checksum"
CHECKSUM_SINCE: Final = "0.5.21"
ROOMS_SINCE: Final = "0.5.11"
"""The first release seen to compare the number of the transfer that metadata are for."""

_MEANING: Final = (
    "A prompt that prefill turns away is still taken by decode, which then answers from memory "
    "that other customers have left, with status 200"
)


def input_limits(engine: Engine, scope: Scope) -> Iterator[Said]:
    """A prompt that prefill rejects is rejected by decode too."""
    if engine.role != "prefill":
        return
    own = input_limit(engine)
    peers = scope.peers(engine, "decode")
    if not peers:
        told = f", rejects from {own.value:,} tokens on ({own.by})" if own.value else ""
        yield Said(
            Verdict.UNKNOWN,
            f"no decode engine was given{told}",
            own.where,
            _MEANING,
            "give the flags of decode too: another --args, --url or file",
        )
    for peer in peers:
        yield _compared(engine, own, peer)


def _compared(engine: Engine, own: Figure, peer: Engine) -> Said:
    other = input_limit(peer)
    if own.value is None or other.value is None:
        return _uncounted(engine, own, peer, other)
    numbers = (
        f"prefill rejects from {own.value:,} tokens on ({own.by}), "
        f"{peer.name} from {other.value:,} ({other.by})"
    )
    if own.value >= other.value:
        return passed(numbers, own.where)
    least = (
        f"raise prefill's pool and context to {other.value + INPUT_MARGIN:,} tokens, or set "
        f"--context-length {own.value + INPUT_MARGIN} on decode"
        if engine.kind == "sglang"
        else "set the same --max-model-len on both"
    )
    verdict = Verdict.FAIL if engine.kind == "sglang" else Verdict.WARN
    return Said(verdict, numbers, own.where, _MEANING, least)


def _uncounted(engine: Engine, own: Figure, peer: Engine, other: Figure) -> Said:
    """Judge a pair whose limits are not both known: the same flags have the same limit."""
    names = ("context-length", "max-model-len", "max-total-tokens", "mem-fraction-static")
    same = all(_value(engine, name) == _value(peer, name) for name in names)
    found = f"prefill: {own.by}; {peer.name}: {other.by}"
    where = (own if own.value is None else other).where
    next_step = (
        "check both running engines with --url"
        if engine.kind == "sglang"
        else "set the same --max-model-len on both, or give --model-config"
    )
    if engine.kind == "vllm" and same:
        return passed("both take the context of the same model", own.where)
    return Said(Verdict.UNKNOWN, found, where, _MEANING, next_step)


def metadata(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """What arrives is known to belong to the request that waits for it."""
    transfer = engine.json_flag("kv-transfer-config")
    if engine.kind == "sglang" and engine.role:
        if engine.is_before(ROOMS_SINCE):
            yield Said(
                Verdict.WARN,
                f"SGLang {engine.version}",
                engine.where,
                f"releases before {ROOMS_SINCE} were not seen to compare whose metadata arrive",
                "run the newest release that `bleedwatch check version` finds no fault in",
            )
        else:
            yield passed("SGLang compares the room of every transfer by itself", engine.where)
    elif engine.kind == "vllm" and transfer:
        flag = engine.flag("kv-transfer-config")
        where = flag.where if flag is not None else engine.where
        extra = transfer.get("kv_connector_extra_config")
        if isinstance(extra, dict) and extra.get("enforce_handshake_compat") is False:
            yield Said(
                Verdict.FAIL,
                "enforce_handshake_compat is false",
                where,
                "prefill and decode no longer compare how their memory is laid out, so what one "
                "writes the other may read as another request's",
                "leave it out of --kv-transfer-config, and give both sides the same settings",
            )
        else:
            yield passed("the handshake compares the layout of memory, by default", where)


def checksum(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """What arrives is compared with what was sent."""
    if engine.kind != "sglang" or not engine.role:
        return
    if engine.is_on(CHECKSUM):
        flag = engine.flags[CHECKSUM]
        yield passed(f"--{CHECKSUM}", flag.where)
        return
    upgrade = f"upgrade to {CHECKSUM_SINCE} or later, then " if _is_old(engine) else ""
    yield Said(
        Verdict.WARN,
        f"--{CHECKSUM} is not given",
        engine.where,
        "memory that arrives torn, or is another request's, is answered from without any error",
        f"{upgrade}start prefill and decode with it; it costs a checksum for each request",
    )


def deferred_release(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """Memory of an aborted request is freed only when nothing writes into it any more."""
    if engine.kind != "sglang" or engine.role != "decode":
        return
    why = (
        "the pages of an aborted request are given to the next one while prefill still writes "
        "into them"
    )
    if DEFERRED in engine.environment:
        value = engine.environment[DEFERRED]
        found = f"{DEFERRED}={value}"
        if value is None:
            found = f"{DEFERRED} is set from elsewhere"
            yield Said(Verdict.UNKNOWN, found, engine.where, why, "write its value into the file")
        elif engine.is_before(DEFERRED_SINCE):
            found = f"SGLang {engine.version} does not know {DEFERRED}"
            next_step = f"upgrade to {DEFERRED_BY_DEFAULT} or later"
            yield Said(Verdict.FAIL, found, engine.where, why, next_step)
        elif value.lower() in OFF:
            next_step = f"set {DEFERRED}=1, or leave it out from {DEFERRED_BY_DEFAULT} on"
            yield Said(Verdict.FAIL, found, engine.where, why, next_step)
        else:
            yield passed(found, engine.where)
        return
    if engine.is_before(DEFERRED_BY_DEFAULT):
        found = f"SGLang {engine.version} without {DEFERRED}"
        next_step = f"upgrade to {DEFERRED_BY_DEFAULT} or later"
        yield Said(Verdict.FAIL, found, engine.where, why, next_step)
    elif not engine.version:
        found = f"{DEFERRED} is not set, and the version is not known"
        next_step = f"state --version, or set {DEFERRED}=1"
        yield Said(Verdict.UNKNOWN, found, engine.where, why, next_step)
    else:
        yield passed(f"on by default in SGLang {engine.version}", engine.where)


def _is_old(engine: Engine) -> bool:
    return bool(engine.is_before(CHECKSUM_SINCE))


def _value(engine: Engine, name: str) -> str:
    flag = engine.flag(name)
    return "" if flag is None else flag.value
