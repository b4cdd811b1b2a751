"""Check of the prefix cache: a tenant's own prompt is found again, another tenant's never."""

from collections.abc import Iterator
from typing import Final

from detector.check.verdict import Said, Verdict, passed
from detector.probe.bench import A, B, Bench

PROMPT_TOKENS: Final = 1_024
"""Of the prompt that is sent again: several blocks of the largest size, which is 128 tokens."""

_ANSWER_TOKENS: Final = 4
"""More than one step, so that hits are counted before the answer is whole."""


def salts(bench: Bench) -> Iterator[Said]:
    """The same prompt hits the cache for the same tenant, and misses it for another.

    A hit of both tenants' own is asked for too, so that a cache that is off proves nothing.
    """
    length = min(PROMPT_TOKENS, (bench.limit or 2 * PROMPT_TOKENS) * 3 // 4)
    prompt = bench.canaries.other(length)
    cached = [_cached(bench, tenant, prompt) for tenant in (A, A, B, B)]
    if None in cached:
        yield Said(
            Verdict.UNKNOWN, "how much came from the cache is not told", bench.where, "",
            "vLLM: --enable-prompt-tokens-details, or --engine-url for its metrics; SGLang: "
            "--enable-cache-report",
        )  # fmt: skip
        return
    _, own, other, others_own = (one or 0 for one in cached)
    found = (
        f"of {length:,} tokens A found {own:,} again, B {other:,} of A's, and {others_own:,} again"
    )
    if other:
        yield Said(
            Verdict.FAIL, f"another tenant's prefix is reused: {found}", bench.where, "",
            "give each tenant a salt, and check that every tier of the cache uses it",
        )  # fmt: skip
    elif not own or not others_own:
        yield Said(
            Verdict.FAIL, f"the cache holds nothing, so nothing is shown: {found}", bench.where,
            "", "switch the prefix cache on, or leave this out with --skip salts if it is meant",
        )  # fmt: skip
    else:
        yield passed(found, bench.where)


def _cached(bench: Bench, tenant: int, prompt: list[int]) -> int | None:
    """Return the tokens of a prompt that came from the cache: as told, else as counted."""
    before = bench.engines.hits()
    heard = bench.ask(tenant, prompt, _ANSWER_TOKENS)
    if not heard.is_answered or heard.answer is None:
        return None
    if heard.answer.cached_tokens is not None:
        return heard.answer.cached_tokens
    after = bench.engines.hits()
    return None if before is None or after is None else after - before
