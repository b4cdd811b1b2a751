"""Writes questions and answers: fresh text with the boilerplate, quotes and idioms around it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

from detector.sample import phrases
from detector.sample.language import Ids, Language
from detector.sample.tenants import Tenant, TenantKind

MAX_ANSWER_TOKENS = 900
MEDIAN_ANSWER_TOKENS = 110
ANSWER_SPREAD = 0.75
"""Answer lengths are log-normal, as chat answers are, and cut off at the token limit."""

OPENER_CHANCE = 0.05
CLOSER_CHANCE = 0.05
REFUSAL_CHANCE = 0.03
QUOTE_CHANCE = 0.25
IDIOM_CHANCE = 0.3
HAND_OVER_CHANCE = 0.2
TOOL_CALL_CHANCE = 0.25
LIST_CHANCE = 0.02
PASTE_CHANCE = 0.6
"""Shares of answers (of first questions for PASTE) that have the thing; chosen by eye."""

QUOTE_TOKENS = (12, 30)
FOLLOW_UP_TOKENS = (12, 45)
TYPED_TOKENS = (20, 70)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's ids without the end marker; `complete` is false when the limit cut it."""

    ids: Ids
    complete: bool


class Writer:
    """Writes in one language. All chance comes from the `rng` passed to each call."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._encoded: dict[str, list[int]] = {}

    def question(self, rng: Random, tenant: Tenant) -> Ids:
        """Ask a session's first question: a passage pasted under a request, or typed freely."""
        asks = phrases.CODE_QUESTIONS if tenant.kind is TenantKind.CODE else phrases.QUESTIONS
        if rng.random() < PASTE_CHANCE:
            return (*self._phrase(rng, asks), *next(tenant.deck))
        return tuple(self._language.prose.write(rng, rng.randint(*TYPED_TOKENS)))

    def follow_up(self, rng: Random) -> Ids:
        """Ask a later question of a session."""
        return tuple(self._language.prose.write(rng, rng.randint(*FOLLOW_UP_TOKENS)))

    def answer(self, rng: Random, kind: TenantKind, question: Ids) -> Answer:
        """Answer `question` as a product of `kind` does."""
        if rng.random() < REFUSAL_CHANCE:
            return Answer(tuple(self._phrase(rng, phrases.REFUSALS)), complete=True)
        length = int(MEDIAN_ANSWER_TOKENS * math.exp(rng.gauss(0.0, ANSWER_SPREAD)))
        ids: list[int] = []
        if rng.random() < OPENER_CHANCE:
            ids += self._phrase(rng, phrases.OPENERS)
        if rng.random() < QUOTE_CHANCE:
            ids += self._quote(rng, question)
        ids += self._body(rng, kind, max(8, length - len(ids)))
        if rng.random() < LIST_CHANCE:
            ids += self._numbers(rng)
        if rng.random() < CLOSER_CHANCE:
            ids += self._phrase(rng, phrases.CLOSERS)
        return Answer(tuple(ids[:MAX_ANSWER_TOKENS]), complete=len(ids) <= MAX_ANSWER_TOKENS)

    def idioms(self) -> Answer:
        """Write an answer that holds every code idiom, each as other answers hold it."""
        ends = self._fixed("\n"), self._fixed("```\n")
        blocks = [(*ends[0], *self._fixed(idiom), *ends[1]) for idiom in phrases.IDIOMS]
        return Answer(tuple(chain.from_iterable(blocks)), complete=True)

    def variant(self, rng: Random, answer: Answer) -> Answer:
        """Another answer to the same question: it starts alike and then goes its own way."""
        if not answer.ids:
            return answer
        kept = rng.randint(0, len(answer.ids) // 2)
        rest = self._language.prose.write(rng, len(answer.ids) - kept)
        return Answer((*answer.ids[:kept], *rest), complete=True)

    def _body(self, rng: Random, kind: TenantKind, length: int) -> list[int]:
        prose, code = self._language.prose, self._language.code
        if kind is TenantKind.CODE:
            idiom = self._phrase(rng, phrases.IDIOMS) if rng.random() < IDIOM_CHANCE else []
            half = max(4, length // 2)
            block = [*self._fixed("```python\n"), *code.write(rng, half), *self._fixed("\n")]
            return [*block, *idiom, *self._fixed("```\n"), *prose.write(rng, half)]
        if kind is TenantKind.AGENT:
            said = self._phrase(rng, phrases.HAND_OVERS) if rng.random() < HAND_OVER_CHANCE else []
            call = self._tool_call(rng) if rng.random() < TOOL_CALL_CHANCE else []
            return [*said, *prose.write(rng, length), *call]
        return prose.write(rng, length)

    def _tool_call(self, rng: Random) -> list[int]:
        head, tail = rng.choice(phrases.TOOL_CALLS)
        return [*self._fixed(head), *self._language.prose.write(rng, 6), *self._fixed(tail)]

    def _quote(self, rng: Random, question: Ids) -> list[int]:
        """Repeat a piece of the question word for word."""
        length = min(len(question), rng.randint(*QUOTE_TOKENS))
        start = rng.randint(0, len(question) - length)
        return [*self._fixed("> "), *question[start : start + length], *self._fixed("\n\n")]

    def _numbers(self, rng: Random) -> list[int]:
        first = rng.randint(0, 3)
        return self._fixed("\n" + ", ".join(str(first + step) for step in range(16)))

    def _phrase(self, rng: Random, choices: Sequence[str]) -> list[int]:
        return self._fixed(rng.choice(choices))

    def _fixed(self, text: str) -> list[int]:
        """Ids of a fixed text, worked out once."""
        if text not in self._encoded:
            self._encoded[text] = self._language.tokenizer.encode(text)
        return self._encoded[text]
