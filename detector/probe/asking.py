"""Sends the requests of both tenants, each within the budget and with a bound on its answer.

Every request has a connection of its own, and a clock that runs from connecting to the last byte:
an engine that answers drop by drop is late like one that does not answer.
"""

import asyncio
from typing import Final, NamedTuple

import httpx
import msgspec

from detector.errors import BudgetError
from detector.probe.budget import Budget
from detector.probe.dialects import Answer, Dialect, Question
from ingest.scrape.http import authorities

MAX_ANSWER_BYTES: Final = 4 * 2**20
"""The longest answer that is asked for has some thousand tokens."""

SETTLED_S: Final = 30.0
"""How long the shortest request may take: an engine under load queues that long."""

PROMPT_TOKENS_PER_S: Final = 1_000
ANSWER_TOKENS_PER_S: Final = 5
"""What even an engine on CPUs reads and writes in a second."""

MAX_LATE: Final = 2
"""So many late answers in a row, and the rest is not asked: each would take as long."""

UNTRUSTED: Final = "its TLS is not trusted"
LATE: Final = "no whole answer in time"

_OK: Final = 200
_ERROR: Final = 400
_NOT_ABOUT_IT: Final = (401, 403, 404, 408, 429)
"""Statuses that say nothing of the prompt: keys, places, time and pace."""


class Heard(NamedTuple):
    """What became of a request. `status` is None if no whole answer came; then `lost` says why."""

    status: int | None = None
    answer: Answer | None = None
    lost: str = ""

    @property
    def is_refused(self) -> bool:
        """True for an error that says that this prompt is not served."""
        status = self.status or 0
        return status >= _ERROR and status not in _NOT_ABOUT_IT

    @property
    def is_answered(self) -> bool:
        """True if it was served."""
        return self.status == _OK

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens of the answer, none where it tells none."""
        return (self.answer.ids if self.answer is not None else None) or ()

    @property
    def told(self) -> str:
        """What happened, as words for a sentence: "refused with status 400"."""
        if self.status is None:
            return f"neither answered nor refused: {self.lost}"
        if not self.is_answered:
            return f"{'refused' if self.is_refused else 'not served'} with status {self.status}"
        return f"answered with status {self.status} and {len(self.ids):,} tokens"


class Access(NamedTuple):
    """Where requests go. `keys` are the bearer tokens of tenant A and tenant B, None without."""

    url: str
    keys: tuple[str | None, str | None] = (None, None)
    ca_file: str | None = None
    patience_s: float = 120.0
    """How long one answer may take at most: the largest prompts are read in for minutes."""


class Asker:
    """Asks as tenant 0 (A) or 1 (B). Safe to use from several threads."""

    def __init__(self, access: Access, dialect: Dialect, budget: Budget) -> None:
        self._access = access
        self._dialect = dialect
        self._budget = budget
        self._trusted = authorities(access.ca_file, where=f"--ca-file {access.ca_file}")
        self._late = 0

    def ask(self, asked: Question, tenant: int, *, patience_s: float | None = None) -> Heard:
        """Return what becomes of a request; a streamed one is left after its first piece.

        Without a patience of its own it may take as long as its length explains. Raises BudgetError
        if it may not be sent, if the time is over before it is answered, and once too many answers
        were late.
        """
        if self._late >= MAX_LATE:
            raise BudgetError(
                f"{self._late} answers in a row did not come in time, so no more is asked",
                hint="probe it while nobody else uses it, and look at its log",
            )
        self._budget.spend()
        own_s = min(self._access.patience_s, _patience_s(asked))
        limit_s = min(own_s if patience_s is None else patience_s, self._budget.left_s)
        try:
            heard = asyncio.run(asyncio.wait_for(self._heard(asked, tenant), limit_s))
        except TimeoutError:
            self._budget.check_time()
            self._late += patience_s is None
            return Heard(lost=LATE)
        except httpx.ConnectError as error:
            is_tls = "SSL" in str(error)
            return Heard(lost=UNTRUSTED if is_tls else "nothing answers there")
        except httpx.RequestError:
            return Heard(lost="the connection was closed")
        self._late = 0
        return heard

    async def _heard(self, asked: Question, tenant: int) -> Heard:
        key = self._access.keys[tenant]
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        whole_s = self._budget.seconds  # the clock around this is the shorter one
        async with (
            httpx.AsyncClient(verify=self._trusted, trust_env=False, timeout=whole_s) as client,
            client.stream(
                "POST",
                self._access.url.rstrip("/") + self._dialect.path,
                content=msgspec.json.encode(self._dialect.body(asked)),
                headers=headers,
            ) as response,
        ):
            if response.status_code != _OK:
                return Heard(response.status_code)
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if asked.is_streamed:
                    return Heard(response.status_code)
                if len(content) > MAX_ANSWER_BYTES:
                    return Heard(lost="an answer without an end")
        return Heard(response.status_code, self._dialect.answer(_decoded(content)))


def _patience_s(asked: Question) -> float:
    read_s = len(asked.prompt) / PROMPT_TOKENS_PER_S
    return SETTLED_S + read_s + asked.max_tokens / ANSWER_TOKENS_PER_S


def _decoded(content: bytearray) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
