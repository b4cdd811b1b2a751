"""Checks of what fits: the pool against the context, against the load, and pages against both."""

from collections.abc import Iterator
from typing import Final

from detector.check.engine import Engine
from detector.check.limits import concurrency, context, is_fitted, page, pool
from detector.check.scope import Scope
from detector.check.verdict import Said, Verdict, passed

WASTE: Final = 0.1
"""Share of the pool that unused ends of pages may take: pressure is told from nine tenths on."""


def covers_context(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """Every prompt that the model allows fits into the KV pool."""
    window, held = context(engine), pool(engine)
    if is_fitted(engine) or (engine.kind == "vllm" and held.value is None):
        found = "vLLM does not start unless one request of the whole context fits"
        yield passed(found, window.where)
        return
    if window.value is None or held.value is None:
        yield Said(
            Verdict.UNKNOWN,
            f"context {_shown(window.value)} ({window.by}), pool {_shown(held.value)} ({held.by})",
            (window if window.value is None else held).where,
            "whether every allowed prompt fits cannot be told",
            _missing(engine, lacks_context=window.value is None),
        )
        return
    numbers = f"pool {held.value:,} tokens ({held.by}), context {window.value:,} ({window.by})"
    if held.value >= window.value:
        yield passed(numbers, held.where)
        return
    yield Said(
        Verdict.FAIL,
        numbers,
        held.where,
        "Customers may send prompts that this engine cannot hold: "
        f"{window.value - held.value:,} tokens of what the model promises have no room in its "
        "memory. On such a prompt engines have answered one customer from what another one had "
        "left there",
        f"raise the pool to {window.value:,} tokens or more, or set {_flag(engine)} "
        f"{held.value} or lower",
    )


def covers_load(engine: Engine, scope: Scope) -> Iterator[Said]:
    """All requests that run at once fit into the pool with their mean length."""
    held, many = pool(engine), concurrency(engine)
    if held.value is None or many.value is None or scope.mean_tokens is None:
        lacking = [
            *([] if scope.mean_tokens is not None else ["the mean length (--mean-tokens)"]),
            *([] if many.value is not None else [many.by]),
            *([] if held.value is not None else [f"the pool: {held.by}"]),
        ]
        yield Said(
            Verdict.UNKNOWN,
            f"not known: {', '.join(lacking)}",
            (many if many.value is None else held).where,
            "whether requests crowd each other out cannot be told",
            "state --mean-tokens, prompt and answer together, and limit how many run at once",
        )
        return
    needed = many.value * scope.mean_tokens
    numbers = (
        f"{many.value:,} requests ({many.by}) of {scope.mean_tokens:,} tokens need {needed:,}, "
        f"the pool has {held.value:,}"
    )
    if needed <= held.value:
        yield passed(numbers, many.where)
        return
    yield Said(
        Verdict.WARN,
        numbers,
        many.where,
        "requests will be pushed out and begun anew, and memory changes hands while it is in use",
        f"let at most {held.value // scope.mean_tokens:,} run at once",
    )


def pages(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """The unused ends of pages leave room for the requests that run at once."""
    size, held, many = page(engine), pool(engine), concurrency(engine)
    if size.value in (None, 1):
        yield passed(f"pages of one token ({size.by}) have no unused ends", size.where)
        return
    if held.value is None or many.value is None:
        yield Said(
            Verdict.UNKNOWN,
            f"pages of {size.value} tokens ({size.by}); "
            f"{many.by if many.value is None else held.by}",
            size.where,
            "how much of the pool the unused ends of pages take cannot be told",
            "limit how many requests run at once, or check the running engine with --url",
        )
        return
    lost = many.value * ((size.value or 1) - 1)
    numbers = (
        f"{many.value:,} requests leave up to {lost:,} tokens of {held.value:,} unused at the "
        f"ends of pages of {size.value} ({size.by})"
    )
    if lost <= held.value * WASTE:
        yield passed(numbers, size.where)
        return
    verdict = Verdict.WARN if many.value * (size.value or 1) <= held.value else Verdict.FAIL
    why = (
        "the pool is fuller than its metrics say"
        if verdict is Verdict.WARN
        else "the requests that may run at once cannot even have one page each"
    )
    yield Said(verdict, numbers, size.where, why, "take smaller pages, or let fewer run at once")


def _shown(count: int | None) -> str:
    return "not known" if count is None else f"{count:,}"


def _flag(engine: Engine) -> str:
    return "--context-length" if engine.kind == "sglang" else "--max-model-len"


def _missing(engine: Engine, *, lacks_context: bool) -> str:
    if lacks_context:
        return f"give the model's config.json with --model-config, or set {_flag(engine)}"
    return (
        "set --max-total-tokens to what the engine prints at its start as max_total_num_tokens, or "
        "check the running engine with --url"
    )
