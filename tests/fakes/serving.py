"""One engine that serves requests from its KV pool, token by token, with the faults asked for.

Time is not simulated here: whoever drives it decides how long a token takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from detector.sample.language import Language
from detector.sample.tokenizer import IM_END
from tests.fakes.cluster.answers import Answer
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.pool import PAGE_TOKENS, KvPool, PoolFullError, colliding_keys
from tests.fakes.cluster.pool import content_keys as keys_of

SERVED_BUGS: Final = frozenset(
    {
        Bug.STALE_AFTER_REJECT,
        Bug.OVER_LIMIT_ANSWERED,
        Bug.FREED_WHILE_DECODING,
        Bug.BATCH_ROW_REUSED,
        Bug.CACHE_KEY_WITHOUT_TENANT,
        Bug.CACHE_KEY_COLLISION,
        Bug.RESPONSE_SWAPPED,
        Bug.UNRELEASED_AFTER_ABORT,
        Bug.UNRELEASED_AFTER_REJECT,
        Bug.USAGE_MISMATCH,
        Bug.DEGENERATE_OUTPUT,
    }
)
"""Faults that a single engine can have; the others need a cluster or a gateway."""

INPUT_MARGIN: Final = 6
"""SGLang rejects a prompt of min(context, pool) - 6 tokens or more."""

OWN_LENGTH: Final = 48
"""Tokens after which an answer ends by itself, unless the request ignores that."""


SEED_TOKENS: Final = 200
"""The end of the prompt decides the answer: the same prompt has the same one."""


class RejectedError(Exception):
    """The prompt is too long: what it has, and the lowest length that is too long."""

    def __init__(self, prompt_tokens: int, limit_tokens: int) -> None:
        super().__init__(prompt_tokens, limit_tokens)
        self.prompt_tokens, self.limit_tokens = prompt_tokens, limit_tokens


class BusyError(Exception):
    """No pages are free: a real engine would let the request wait."""


@dataclass(slots=True, kw_only=True)
class Job:
    """One request and what has become of it. `ends_early` is false if it ignores the end."""

    request_id: str
    prompt: Sequence[int]
    max_tokens: int
    salt: str = ""
    ends_early: bool = True
    pages: list[int] = field(default_factory=list)
    cached_tokens: int = 0
    attended: int = 0
    """Tokens of the prompt that the engine believes to hold."""
    told_prompt_tokens: int = 0
    output: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    voice: "Job | None" = None
    """The job whose pages this one reads by mistake, None if its own."""
    is_running: bool = False


class Serving:
    """Admits, answers and ends requests. `bugs` may change at any time."""

    def __init__(
        self,
        language: Language,
        *,
        pool_tokens: int,
        context_tokens: int,
        bugs: set[Bug],
        margin_tokens: int = INPUT_MARGIN,
    ) -> None:
        self.pool = KvPool(pool_tokens)
        self.margin_tokens = margin_tokens
        self.context_tokens = context_tokens
        self.bugs = bugs
        self.running: list[Job] = []
        self.prompt_tokens = 0
        self.finished = 0
        self._language = language
        self._last: Job | None = None

    @property
    def limit_tokens(self) -> int:
        """The lowest length of a prompt that is rejected."""
        return min(self.context_tokens, self.pool.total_tokens) - self.margin_tokens

    def admit(self, job: Job) -> None:
        """Reserve pages and write the prompt. Raises RejectedError or BusyError."""
        length = len(job.prompt)
        is_over = length >= self.limit_tokens
        if is_over and not self.bugs & {Bug.STALE_AFTER_REJECT, Bug.OVER_LIMIT_ANSWERED}:
            if Bug.UNRELEASED_AFTER_REJECT in self.bugs:
                self._reserve(job, min(length, PAGE_TOKENS * 8))
            raise RejectedError(length, self.limit_tokens)
        room = min(length, self.limit_tokens - 1)
        self._reserve(job, room)
        written = job.prompt[:room]
        if is_over and Bug.STALE_AFTER_REJECT in self.bugs:
            written = job.prompt[:1]
        self.pool.write(job.pages, job.cached_tokens, written[job.cached_tokens :])
        job.attended, job.told_prompt_tokens = room, len(written)
        if Bug.USAGE_MISMATCH in self.bugs:
            job.told_prompt_tokens = 1
        if len(written) == length:
            self.pool.cache(self._keys(job), job.pages)
        job.voice = self._mistaken(job)
        job.is_running = True
        self.running.append(job)
        self.prompt_tokens += job.told_prompt_tokens

    def tokens(self, job: Job) -> Iterator[int]:
        """Yield the answer's tokens; `finish_reason` is set with the last one."""
        length = min(job.max_tokens, OWN_LENGTH) if job.ends_early else job.max_tokens
        voice = job.voice or job
        seed = str(list(voice.prompt[-SEED_TOKENS:]))
        own = self._language.prose.write(Random(seed), length)
        answer = Answer(own, seed=seed)
        while not answer.is_done and len(job.output) < length:
            for made in answer.piece(lambda: self._attend(job))[: length - len(job.output)]:
                number = job.prompt[0] if Bug.DEGENERATE_OUTPUT in self.bugs else made
                job.output.append(number)
                yield number
            if Bug.FREED_WHILE_DECODING in self.bugs and job.pages:
                self.pool.release(job.pages)
                job.pages, job.voice = [], job.voice or _shadow(job)
            job.voice = None if Bug.BATCH_ROW_REUSED in self.bugs else job.voice
        job.finish_reason = "length"
        if length < job.max_tokens:
            job.finish_reason = "stop"
            job.output.append(IM_END)
            yield IM_END

    def end(self, job: Job, *, is_aborted: bool = False) -> None:
        """Release the job's pages; a second time does nothing."""
        if not job.is_running:
            return
        job.is_running = False
        self.running.remove(job)
        self.finished += not is_aborted
        self._last = _shadow(job)
        if not (is_aborted and Bug.UNRELEASED_AFTER_ABORT in self.bugs):
            self.pool.release(job.pages)

    def _attend(self, job: Job) -> list[int]:
        seen = job.voice or job
        return self.pool.read(seen.pages, seen.attended)

    def _reserve(self, job: Job, tokens: int) -> None:
        hit = self.pool.reuse(self._keys(job)[: max(0, tokens - 1) // PAGE_TOKENS])
        job.cached_tokens = len(hit) * PAGE_TOKENS
        try:
            job.pages = hit + self.pool.take(tokens - job.cached_tokens + job.max_tokens)
        except PoolFullError:
            try:
                job.pages = hit + self.pool.take(tokens - job.cached_tokens)
            except PoolFullError:
                self.pool.release(hit)
                raise BusyError from None

    def _keys(self, job: Job) -> list[int]:
        if Bug.CACHE_KEY_COLLISION in self.bugs:
            return colliding_keys(job.prompt)
        without = Bug.CACHE_KEY_WITHOUT_TENANT in self.bugs
        return keys_of(job.prompt, "" if without else job.salt)

    def _mistaken(self, job: Job) -> Job | None:
        """Return whose pages a faulty batch gives this job."""
        if Bug.BATCH_ROW_REUSED in self.bugs:
            return self._last
        if Bug.RESPONSE_SWAPPED in self.bugs and self.running:
            other = self.running[-1]
            other.voice = job
            return other
        return None


def _shadow(job: Job) -> Job:
    """Return the job as a stale reference still sees it after its pages were released."""
    return Job(
        request_id=job.request_id, prompt=job.prompt, max_tokens=job.max_tokens,
        pages=list(job.pages), attended=job.attended,
    )  # fmt: skip
