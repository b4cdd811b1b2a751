"""Checks of lengths: what is too long is refused, what fits is read as a whole."""

from collections.abc import Iterator
from typing import Final

from detector.check.verdict import Said, Verdict, passed
from detector.probe.bench import B, Bench

MAX_PROMPT: Final = 4 * 2**20
"""Tokens of the longest prompt that is sent, 20 MB as JSON; contexts of today end at a million."""

DEGENERATE_IDS: Final = 2
"""Distinct tokens of an answer that repeats itself and nothing else."""

_LOOKED_AT: Final = 16
"""Tokens without which an answer says nothing about repetition."""

_VARIED: Final = 3
"""Answers that must all repeat themselves: one may have a reason of its own."""


def boundary(bench: Bench) -> Iterator[Said]:
    """Prompts are refused from the limit on, and answered just below it."""
    limit = bench.limit
    if limit is None:
        yield Said(
            Verdict.UNKNOWN,
            "no limit is known: " + (_problem(bench) or "the engine tells none"),
            bench.where,
            "",
            "name the engines with --engine-url, or the smallest pool with --pool-tokens",
        )
        return
    for length in around(bench, limit):
        heard = bench.ask(B, bench.canaries.other(length), 1)
        at = f"{length:,} tokens"
        if length < limit and heard.is_answered:
            yield passed(f"{at}: {heard.told}", bench.where)
        elif length < limit and heard.is_refused:
            yield Said(
                Verdict.WARN, f"{at}: {heard.told}, though {limit:,} is the limit", bench.where,
                "", "find out who refuses earlier than the engines say",
            )  # fmt: skip
        elif length < limit or not heard.is_refused:
            yield Said(
                Verdict.FAIL, f"{at}, and the limit is {limit:,}: {heard.told}", bench.where, "",
                "refuse such prompts at the gateway at once, and upgrade the engine",
            )  # fmt: skip
        else:
            yield passed(f"{at}: {heard.told}", bench.where)


def around(bench: Bench, limit: int) -> list[int]:
    """Return the lengths to try: one below, at and one above the limit and every size known."""
    told = bench.engines.limits.sizes
    marks = {limit, *told, *(() if bench.pool_tokens is None else (bench.pool_tokens,))}
    lengths = {mark + step for mark in marks for step in (-1, 0, 1)}
    return sorted(one for one in lengths if limit - 1 <= one <= MAX_PROMPT)


def usage(bench: Bench) -> Iterator[Said]:
    """The engine reports as many prompt tokens as were sent."""
    lengths = [bench.short] + ([] if bench.limit is None else [bench.limit - 1])
    for length in lengths:
        heard = bench.ask(B, bench.canaries.other(length), 1)
        told = None if heard.answer is None else heard.answer.prompt_tokens
        if told is None:
            yield Said(
                Verdict.UNKNOWN, f"{length:,} tokens: {heard.told}, without usage", bench.where,
                "", "ask an endpoint that reports usage",
            )  # fmt: skip
        elif told != length:
            yield Said(
                Verdict.FAIL, f"{told:,} of {length:,} prompt tokens were read", bench.where, "",
                "take the engine out of service: it answers something else than it was asked",
            )  # fmt: skip
        else:
            yield passed(f"{told:,} of {length:,} prompt tokens were read", bench.where)


def varied(bench: Bench) -> Iterator[Said]:
    """Answers do not repeat one token."""
    wanted = bench.answer(32)
    answers = [
        bench.ask(B, bench.canaries.other(bench.short), wanted, temperature=1.0).ids
        for _ in range(_VARIED)
    ]
    counts = [len(set(ids)) for ids in answers if len(ids) >= _LOOKED_AT]
    if not counts:
        yield Said(
            Verdict.UNKNOWN, f"no answer has {_LOOKED_AT} tokens that are told", bench.where, "",
            "ask an endpoint that returns token ids",
        )  # fmt: skip
    elif len(counts) == _VARIED and max(counts) <= DEGENERATE_IDS:
        yield Said(
            Verdict.FAIL, f"{len(counts)} answers repeat one or two tokens", bench.where, "",
            "restart the engine: its memory or its weights are damaged",
        )  # fmt: skip
    else:
        yield passed(f"{max(counts)} distinct tokens in an answer of {wanted}", bench.where)


def _problem(bench: Bench) -> str:
    return next((one.what for one in bench.engines.problems), "")
