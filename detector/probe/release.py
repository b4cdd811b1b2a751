"""Checks of what is given back: after a refusal, an abort, a time-out the pool is as before."""

from collections.abc import Callable, Iterator
from typing import Final

from detector.check.verdict import Said, Verdict, passed
from detector.probe.bench import B, Bench

REFUSALS: Final = 3
"""Requests whose traces add up: one block would drown in rounding."""

PATIENCE_S: Final = (1.0, 0.25)
"""After how long a client gives up: the shorter one if an engine was faster than the longer."""

GREEDY_TOKENS: Final = 4_096
"""Of an answer that nobody waits for."""


def after_refusal(bench: Bench) -> Iterator[Said]:
    """A refused request leaves nothing in the pool."""

    def refused() -> str | None:
        limit = bench.limit
        if limit is None:
            return "no limit is known"
        heard = [bench.ask(B, bench.canaries.other(limit), 1) for _ in range(REFUSALS)]
        lost = next((one for one in heard if not one.is_refused), None)
        return None if lost is None else f"a prompt of {limit:,} tokens was {lost.told}"

    yield from _returned(bench, refused, f"{REFUSALS} refusals")


def after_abort(bench: Bench) -> Iterator[Said]:
    """A request whose client goes away in the middle of a stream leaves nothing in the pool."""

    def aborted() -> str | None:
        heard = bench.ask(
            B, _prompt(bench), bench.answer(GREEDY_TOKENS), goes_on=True, is_left=True
        )
        return None if heard.is_answered else f"the stream was {heard.told}"

    yield from _returned(bench, aborted, "an abort")


def after_time_out(bench: Bench) -> Iterator[Said]:
    """A request whose client gives up waiting leaves nothing in the pool."""

    def timed_out() -> str | None:
        for patience_s in PATIENCE_S:
            heard = bench.ask(
                B, _prompt(bench), bench.answer(GREEDY_TOKENS), goes_on=True, patience_s=patience_s
            )
            if heard.status is None:
                return None
        return f"the request was {heard.told} before a client gave up"

    yield from _returned(bench, timed_out, "a time-out")


def _prompt(bench: Bench) -> list[int]:
    return bench.canaries.other(bench.short)


def _returned(bench: Bench, act: Callable[[], str | None], after: str) -> Iterator[Said]:
    """Do something at idle, and compare the pool with what it held before.

    `act` returns why it did not come to that, None if it did.
    """
    before = bench.engines.settled(bench.settle_s)
    if before is None or before.requests:
        yield _unseen(bench, is_told=before is not None)
        return
    reason = act()
    if reason is not None:
        yield Said(Verdict.UNKNOWN, reason, bench.where, "", "mend what the other checks name")
        return
    now = bench.engines.settled(bench.settle_s, at_most=before.used_tokens)
    if now is None:
        yield _unseen(bench, is_told=False)
    elif now.requests or now.used_tokens > before.used_tokens:
        yield Said(
            Verdict.FAIL,
            f"{bench.settle_s:g} s after {after} {now.used_tokens:,} tokens are in use and "
            f"{now.requests} requests run; before it was {before.used_tokens:,} tokens",
            bench.where, "", "restart the engine in a quiet moment, and upgrade it",
        )  # fmt: skip
    else:
        yield passed(f"{now.used_tokens:,} tokens in use after {after}, as before", bench.where)


def _unseen(bench: Bench, *, is_told: bool) -> Said:
    if is_told:
        return Said(
            Verdict.UNKNOWN, f"the engine was not idle within {bench.settle_s:g} s", bench.where,
            "", "probe it while nobody else uses it",
        )  # fmt: skip
    problem = next((one.what for one in bench.engines.problems), "")
    return Said(
        Verdict.UNKNOWN, "the use of the pool is not told" + (f": {problem}" if problem else ""),
        bench.where, "", "name the engines with --engine-url; SGLang needs --enable-metrics",
    )  # fmt: skip
