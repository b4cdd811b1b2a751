"""Public questions: the same question that several tenants ask around the same time."""

from random import Random

from detector.sample.language import Ids
from detector.sample.tenants import TenantKind
from detector.sample.writer import Answer, Writer

REQUESTS_PER_QUESTION = 45
"""One public question for so many requests: about two askers each."""

VERBATIM_CHANCE = 0.5
"""How often an asker gets the very same answer, as at temperature 0 from the same model."""

SPREAD = 0.6
"""How far in the list, as a standard deviation, an asker strays from the question of the hour."""


class PublicQuestions:
    """A list of questions that come into fashion one after the other."""

    def __init__(self, rng: Random, writer: Writer) -> None:
        self._rng = rng
        self._writer = writer
        self._questions: list[tuple[Ids, Answer]] = []

    def prepare(self, requests: int) -> None:
        """Make the questions for a period of so many requests."""
        for _ in range(max(1, requests // REQUESTS_PER_QUESTION)):
            question = self._writer.follow_up(self._rng)
            answer = self._writer.answer(self._rng, TenantKind.CHAT, question)
            self._questions.append((question, answer))

    def ask(self, progress: float) -> tuple[Ids, Answer]:
        """Answer a question in fashion when `progress` (0 to 1) of the period has passed."""
        rank = round(progress * len(self._questions) + self._rng.gauss(0.0, SPREAD))
        question, answer = self._questions[min(max(rank, 0), len(self._questions) - 1)]
        if self._rng.random() < VERBATIM_CHANCE:
            return question, answer
        return question, self._writer.variant(self._rng, answer)
