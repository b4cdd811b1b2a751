"""Checks with canaries: what A plants in the pool never comes back in an answer to B."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from detector.check.verdict import Said, Verdict, passed
from detector.probe.asking import Heard
from detector.probe.bench import ANSWER_TOKENS, LONG_TOKENS, A, B, Bench, Surfaced

MAX_FILLS: Final = 32
"""Prompts with which A fills the pool at most: a larger one is filled in part, which is said."""

UNKNOWN_FILLS: Final = 4
"""Prompts of A where nobody knows how large the pool is."""

ALTERNATIONS: Final = 12
"""Short prompts of A and B in turn: each shows a reused slot with even odds."""

OVER_ROUNDS: Final = 2
"""How often each over-limit length is sent: an answer holds what it reads with even odds."""

CONCURRENT: Final = 4
"""Long answers to B beside which A works."""

BESIDE_PARTS: Final = 4
"""Prompts that make up the longest one, where B's answer needs room beside them."""


class Scanned(NamedTuple):
    """The answer of B to a prompt of so many tokens."""

    prompt_tokens: int
    heard: Heard


class Filled(NamedTuple):
    """How many tokens A has written, and how large the pool is, None where nothing tells it."""

    tokens: int
    pool_tokens: int | None

    @property
    def told(self) -> str:
        """The same as words."""
        if self.pool_tokens is None:
            return f"A planted {self.tokens:,} tokens"
        share = min(1.0, self.tokens / self.pool_tokens)
        return f"A planted {self.tokens:,} tokens, {share:.0%} of the pool"


def over_limit(bench: Bench) -> Iterator[Said]:
    """B's over-limit prompts, after A has filled the pool, bring back nothing of A's."""
    limit = bench.limit
    if limit is None:
        yield Said(
            Verdict.UNKNOWN, "no limit is known", bench.where, "",
            "name the engines with --engine-url, or the smallest pool with --pool-tokens",
        )  # fmt: skip
        return
    filled = _fill(bench)
    lengths = sorted({limit, limit + 1, max(limit, bench.pool or 0) + 1})
    wanted = bench.answer(ANSWER_TOKENS)
    answers = [
        Scanned(length, bench.ask(B, bench.canaries.other(length), wanted, goes_on=True))
        for length in lengths * OVER_ROUNDS
    ]
    refused = sum(one.heard.is_refused for one in answers)
    yield _judged(bench, "canary-over-limit", answers, filled, refused)


def short(bench: Bench) -> Iterator[Said]:
    """B's short prompts, each after one of A's, bring back nothing of A's."""
    filled = _fill(bench)
    answers = []
    for _ in range(ALTERNATIONS):
        bench.ask(A, bench.canaries.plant(bench.short), bench.answer(ANSWER_TOKENS))
        prompt = bench.canaries.other(bench.short)
        heard = bench.ask(B, prompt, bench.answer(ANSWER_TOKENS), goes_on=True)
        answers.append(Scanned(bench.short, heard))
    yield _judged(bench, "canary-short", answers, filled)


def concurrent(bench: Bench) -> Iterator[Said]:
    """B's long answers, while A fills the pool beside them, bring back nothing of A's."""
    answers, filled = [], Filled(0, bench.pool)
    with ThreadPoolExecutor(1) as beside:
        for _ in range(CONCURRENT):
            prompt = bench.canaries.other(bench.short)
            wanted = bench.answer(LONG_TOKENS)
            decoding = beside.submit(bench.ask, B, prompt, wanted, goes_on=True)
            bench.ask(A, bench.canaries.plant(bench.short), bench.answer(ANSWER_TOKENS))
            filled = _fill(bench, parts=BESIDE_PARTS)
            answers.append(Scanned(bench.short, decoding.result()))
    yield _judged(bench, "canary-concurrent", answers, filled)


def _fill(bench: Bench, *, parts: int = 1) -> Filled:
    """Let A write canaries all over the pool, in prompts of the limit's length or parts of it."""
    length = max(1, ((bench.limit or bench.short * 4) - 2) // parts)
    wanted = UNKNOWN_FILLS if bench.pool is None else -(-bench.pool // length)
    written = sum(
        length
        for _ in range(min(wanted, MAX_FILLS))
        if bench.ask(A, bench.canaries.plant(length), 1).is_answered
    )
    return Filled(written, bench.pool)


def _judged(
    bench: Bench, check: str, answers: list[Scanned], filled: Filled, refused: int = 0
) -> Said:
    """Scan B's answers; `refused` requests needed none."""
    found = [
        Surfaced(
            check,
            one.heard.answer.request_id if one.heard.answer is not None else "",
            one.prompt_tokens,
            len(one.heard.ids),
            echoes,
        )
        for one in answers
        if (echoes := tuple(bench.canaries.echoes(one.heard.ids)))
    ]
    bench.surfaced += found
    how = filled.told + (f"; {refused} refused" if refused else "")
    scanned = sum(bool(one.heard.ids) for one in answers)
    if found:
        longest = max(echo.length for one in found for echo in one.echoes)
        return Said(
            Verdict.FAIL,
            f"{len(found)} of {scanned} answers to B hold a canary of A, up to {longest} tokens "
            f"of it ({how})",
            bench.where, "", "stop traffic to this pool; docs/probe.md says what next",
        )  # fmt: skip
    if not filled.tokens:
        return Said(
            Verdict.UNKNOWN,
            "no prompt of A was served",
            bench.where,
            "",
            "probe it while nobody else uses it",
        )
    if scanned + refused < len(answers):
        lost = next(one.heard for one in answers if not one.heard.ids)
        return Said(
            Verdict.UNKNOWN, f"{scanned} of {len(answers)} answers to B could be read: "
            f"{lost.told}", bench.where, "", "ask an endpoint that returns token ids",
        )  # fmt: skip
    return passed(f"no canary of A in {scanned} answers to B ({how})", bench.where)
