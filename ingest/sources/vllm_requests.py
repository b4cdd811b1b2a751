"""One vLLM request while its lines come in, and what may honestly be said of it once it is over."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ingest.sources.base import Loss, RawRequest
from ingest.sources.vllm_messages import Body, Output, PromptSeen, Received

MIN_CAP = 16
"""Shorter texts have as many characters as tokens by chance (a digit, a letter)."""


@dataclass(slots=True)
class Answer:
    """One non-streamed answer: its ids if they were logged."""

    ids: list[int] | None = field(default=None, repr=False)
    cut: bool = False
    finish_reason: str | None = None


@dataclass(slots=True, kw_only=True)
class OpenRequest:
    """Everything logged so far for one engine id. Times are milliseconds of log time.

    `mixed`: another request of the same id was running, or answers share one id, so output lines
    cannot be told apart.
    """

    request_id: str
    opened_ms: int
    since_ms: int
    first_line: int
    last_line: int
    last_ms: int | None = None
    prompt: PromptSeen | None = None
    received: Received | None = None
    body: Body | None = None
    parent_id: str | None = None
    answers: list[Answer] = field(default_factory=list)
    awaited: Answer | None = None
    deltas: list[int] | None = field(default=None, repr=False)
    streamed: bool = False
    completes: int = 0
    ended: bool = False
    aborted: bool = False
    mixed: bool = False
    finish_reason: str | None = None

    @property
    def choices(self) -> int:
        """How many answers were asked for (`n`); 1 if the log does not say."""
        return self.received.choices if self.received is not None else 1

    @property
    def held_ids(self) -> int:
        """How many token ids are held."""
        prompt = self.prompt.ids if self.prompt is not None else None
        answers = sum(len(answer.ids or ()) for answer in self.answers)
        awaited = self.awaited.ids if self.awaited is not None else None
        return len(prompt or ()) + len(self.deltas or ()) + len(awaited or ()) + answers

    def has_output(self) -> bool:
        """Say whether any output line has come."""
        return self.streamed or bool(self.answers) or self.awaited is not None

    def add(self, output: Output, ended_ms: int, caps: "CutDetector") -> None:
        """Take one output line; `self.ended` is set by the line that completes the request."""
        self.last_ms = ended_ms
        if output.mode == "whole":
            self._add_answer(output, caps)
            return
        self.streamed = True
        if output.mode == "delta" and output.ids is not None:
            if self.deltas is None:
                self.deltas = []
            self.deltas.extend(output.ids)
        if output.ended and output.mode == "delta":
            self.finish_reason = output.finish_reason or self.finish_reason
        if output.ended and output.mode == "complete":
            self.completes += 1
            self.ended = self.completes >= self.choices

    def _add_answer(self, output: Output, caps: "CutDetector") -> None:
        answer = self.awaited or Answer()
        if output.ids is not None:
            answer.ids = output.ids
        if not output.ended:
            self.awaited = answer
            return
        answer.cut = caps.is_cut(answer.ids, output.chars)
        answer.finish_reason = output.finish_reason
        self.awaited = None
        self.answers.append(answer)
        self.ended = len(self.answers) >= self.choices


class CutDetector:
    """Tells whether `--max-log-len` cut a list: vLLM leaves no mark, so this goes by lengths.

    Text and ids of one entry that both have exactly N items (N >= 16) were cut at N; so was a
    request body that stops inside its JSON at character N, if two bodies do; in both cases only
    while nothing longer than N was seen. Once N is known, every list of N ids counts as cut.
    Id-only prompts before that moment cannot be told.
    """

    def __init__(self) -> None:
        self.cap: int | None = None
        self._body_cut: int | None = None
        self._longest = 0

    def is_cut(self, ids: list[int] | None, chars: int | None) -> bool:
        """Judge one list beside the number of characters of its text (None: no text)."""
        if ids is None or len(ids) < 1:
            return False
        self._see(max(len(ids), chars or 0))
        if chars == len(ids) == self._longest >= MIN_CAP:
            self.cap = chars
        return len(ids) == self.cap

    def body_cut(self, length: int) -> None:
        """Note a request body that was cut at `length` characters."""
        self._see(length)
        if length == self._body_cut == self._longest:
            self.cap = length
        self._body_cut = length

    def _see(self, length: int) -> None:
        self._longest = max(self._longest, length)
        if self.cap is not None and length > self.cap:
            self.cap = None


@dataclass(slots=True)
class LogHabits:
    """What this log has shown so far, which tells "not logged" from "no line for this answer"."""

    output_ids: bool = False
    completion_ids: bool = False
    completions_never: bool = False

    def learn(self, output: Output) -> None:
        """Note that output ids of this kind of request are logged."""
        if output.ids is not None:
            self.output_ids = True
            self.completion_ids |= output.request_id.startswith("cmpl-")


def finished(
    request: OpenRequest, *, engine: str, habits: LogHabits, caps: CutDetector
) -> Iterator[RawRequest]:
    """Yield one RawRequest per answer; the second and later ones are named "<id>#1" and so on."""
    if request.streamed or not (request.answers or request.awaited):
        ids, loss = _streamed(request, habits)
        yield _raw(request, engine, caps, ids=ids, loss=loss, finish=request.finish_reason)
        return
    answers = [*request.answers, *([request.awaited] if request.awaited else ())]
    answers += [Answer()] * (request.choices - len(answers))
    for index, answer in enumerate(answers):
        loss = _whole_loss(answer, habits)
        withheld = request.mixed
        raw = _raw(
            request,
            engine,
            caps,
            ids=None if withheld else answer.ids,
            loss=Loss.DELTAS_LOST if withheld else loss,
            finish=answer.finish_reason,
        )
        if index:
            raw.request_id, raw.parent_id = f"{request.request_id}#{index}", request.request_id
        yield raw


def _whole_loss(answer: Answer, habits: LogHabits) -> Loss | None:
    if answer.ids is None:
        return Loss.NO_OUTPUT_LINE if habits.output_ids else Loss.NOT_LOGGED
    return Loss.TRUNCATED if answer.cut else None


def _streamed(request: OpenRequest, habits: LogHabits) -> tuple[list[int] | None, Loss | None]:
    """Judge a streamed answer, or one without any output line.

    A delta without text is never logged, so a stream is complete only where its length is known:
    it ended for length, at exactly `max_tokens`. Streams whose answers are mixed under one id
    (n > 1, or two running requests with the same id) are withheld: they could accuse the innocent.
    """
    if request.received is not None and not request.received.generates:
        return None, None
    if request.streamed and (request.mixed or request.choices > 1):
        return None, Loss.DELTAS_LOST
    if request.deltas is not None:
        limit = request.received.max_tokens if request.received is not None else None
        if request.finish_reason == "length" and len(request.deltas) == limit:
            return request.deltas, None
        unfinished = request.aborted or not request.ended
        return request.deltas, Loss.NEVER_FINISHED if unfinished else Loss.DELTAS_LOST
    return None, _missing(request, habits)


def _missing(request: OpenRequest, habits: LogHabits) -> Loss:
    completion = request.request_id.startswith("cmpl-")
    if not habits.output_ids or (completion and not habits.completion_ids):
        return Loss.NOT_LOGGED
    if request.streamed and not request.aborted:
        return Loss.DELTAS_LOST
    return Loss.NEVER_FINISHED if request.aborted else Loss.NO_OUTPUT_LINE


def _raw(
    request: OpenRequest,
    engine: str,
    caps: CutDetector,
    *,
    ids: list[int] | None,
    loss: Loss | None,
    finish: str | None,
) -> RawRequest:
    prompt, body = request.prompt, request.body
    identity = dict(body.identity) if body is not None else {}
    if request.received is not None and request.received.lora is not None:
        identity["lora_name"] = request.received.lora
    prompt_loss = Loss.NOT_LOGGED if prompt is None else prompt.loss
    if prompt is not None and prompt_loss is None and caps.is_cut(prompt.ids, prompt.chars):
        prompt_loss = Loss.TRUNCATED
    return RawRequest(
        request_id=request.request_id,
        started_at_ms=request.opened_ms,
        ended_at_ms=request.last_ms,
        prompt_ids=prompt.ids if prompt is not None else None,
        response_ids=ids,
        prompt_loss=prompt_loss,
        response_loss=loss,
        engine=engine,
        model=body.model if body is not None else None,
        parent_id=request.parent_id,
        session=identity.get("session_id"),
        end_user=identity.get("user"),
        finish_reason="abort" if request.aborted and finish is None else finish,
        identity=identity,
        first_line=request.first_line,
        last_line=request.last_line,
    )
