"""One request and its answer: the token ids that have passed so far, bounded."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from ingest.limits import MAX_TEXT_CHARS
from ingest.sources.base import Loss, RawRequest
from ingest.tap.answer import Seen, SeenChoice
from ingest.tap.blind import Blind
from ingest.tap.room import Room

ID_BYTES = array("I").itemsize


@dataclass(slots=True, kw_only=True)
class Known:
    """What is known of a request before its answer. `request_id` is ours, of fixed width."""

    request_id: str
    started_at_ms: int
    tenant: str
    is_numbered: bool
    """True where every answer has a number behind the id of the request, even the only one."""
    model: str | None = None
    roles: tuple[str, ...] | None = None
    session: str | None = None
    end_user: str | None = None


@dataclass(slots=True, repr=False)
class _Kept:
    prompt: "array[int] | None" = None
    response: "array[int] | None" = None
    finish_reason: str | None = None


class Exchange:
    """Keeps the ids of one request in `room`; what does not fit is dropped whole, and counted.

    For one thread at a time; `requests` or `close` ends it.
    """

    def __init__(self, known: Known, room: Room, blind: Blind, *, most_tokens: int) -> None:
        self._known = known
        self._room = room
        self._blind = blind
        self._most_tokens = most_tokens
        self._kept: dict[int, _Kept] = {}
        self._tokens = 0
        self._causes: set[str] = set()
        self._is_dropped = False
        self._request_id: str | None = None
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self.status: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the ids that are kept."""
        return self._tokens * ID_BYTES

    def missed(self, cause: str) -> None:
        """Count that something of this request is not seen: once for each cause."""
        if cause not in self._causes:
            self._causes.add(cause)
            self._blind.count(cause)

    def drop(self, cause: str) -> None:
        """Keep no ids of this request, and count why."""
        self.missed(cause)
        self.close()
        self._is_dropped = True

    def close(self) -> None:
        """Forget the ids."""
        self._room.give(self.size)
        self._kept.clear()
        self._tokens = 0

    def take(self, seen: Seen) -> None:
        """Keep what an answer, or the next event of a stream, has told."""
        self._request_id = self._request_id or seen.request_id
        self._known.model = seen.model or self._known.model
        if seen.prompt_tokens is not None:
            self._prompt_tokens = seen.prompt_tokens
        if seen.completion_tokens is not None:
            self._completion_tokens = seen.completion_tokens
        self.status = seen.status or self.status
        for choice in seen.choices:
            if not self._is_dropped:
                self._take(choice)

    def _take(self, choice: SeenChoice) -> None:
        kept = self._kept.setdefault(choice.index, _Kept())
        kept.finish_reason = choice.finish_reason or kept.finish_reason
        new = choice.response
        if new is not None and choice.is_all and kept.response is not None:
            new = new[len(kept.response) :]
        prompt = choice.prompt if kept.prompt is None else None
        count = len(new or ()) + len(prompt or ())
        if self._tokens + count > self._most_tokens:
            self.drop("too_many_tokens")
            return
        if not self._room.take(count * ID_BYTES):
            self.drop("memory")
            return
        self._tokens += count
        try:
            if prompt is not None:
                kept.prompt = array("I", prompt)
            if new is not None:
                kept.response = kept.response or array("I")
                kept.response.extend(new)
        except (OverflowError, TypeError):  # no token has such a number
            self.drop("refused")

    def requests(self, *, ended_at_ms: int, status: int, is_cut: bool) -> Iterator[RawRequest]:
        """Yield one request for each answer, or one without ids if there is none.

        `is_cut`: the client went away or the engine broke off; the ids are those up to there.
        """
        status = self.status or status
        if not self._kept and not self._is_dropped and status < 400 and not is_cut:
            self.missed("no_ids")
        counted = sum(len(one.response or ()) for one in self._kept.values())
        is_short = not is_cut and counted < (self._completion_tokens or 0)
        if self._kept and is_short:
            self.missed("ids_missing")
        parent = self._name()
        for index, kept in sorted(self._kept.items()) or [(0, _Kept())]:
            is_plain = index == 0 and not self._known.is_numbered
            request = RawRequest(
                request_id=parent if is_plain else f"{parent}-{index}",
                parent_id=None if index == 0 else parent,
                started_at_ms=self._known.started_at_ms,
                ended_at_ms=ended_at_ms,
                prompt_ids=None if kept.prompt is None else kept.prompt.tolist(),
                response_ids=None if kept.response is None else kept.response.tolist(),
                prompt_loss=Loss.NOT_LOGGED if kept.prompt is None else None,
                response_loss=_loss(kept, is_short=is_short),
                roles=self._known.roles,
                model=self._known.model,
                session=self._known.session,
                end_user=self._known.end_user,
                finish_reason=kept.finish_reason or ("abort" if is_cut else None),
                status=status,
                reported_prompt_tokens=self._prompt_tokens if len(self._kept) <= 1 else None,
                identity={"tenant": self._known.tenant},
            )
            yield request

    def _name(self) -> str:
        """Return the engine's id of the request where it can be a name, else ours."""
        told = self._request_id
        fits = told and len(told) <= MAX_TEXT_CHARS - 8 and told.isprintable()
        return told if told and fits else self._known.request_id


def _loss(kept: _Kept, *, is_short: bool) -> Loss | None:
    if kept.response is None:
        return Loss.NOT_LOGGED
    return Loss.DELTAS_LOST if is_short else None
