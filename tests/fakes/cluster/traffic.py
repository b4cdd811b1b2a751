"""Requests for the simulated cluster: natural text, sessions that send their answers back."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from detector.model import Role
from detector.sample.chatml import Message, messages_of, render
from detector.sample.language import Ids
from detector.sample.tokenizer import IM_END
from detector.sample.traffic import SampleRequest, Traffic
from tests.fakes.cluster.call import Call

LEAVES_CHANCE: Final = 0.04
"""Share of clients that go away before the end: closed tabs and short time-outs."""

OVER_LONG_TOKENS: Final = (1.02, 1.6)
"""Length of a prompt that is too long, as a multiple of the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of a cluster. `over_long` prompts exceed `limit_tokens`."""

    traffic: Traffic
    over_long: int = 0
    limit_tokens: int = 0


class Sessions:
    """Makes a call of a sample request; earlier turns hold the answers that were really given."""

    def __init__(self) -> None:
        self._given: dict[str, dict[Ids, Ids]] = {}

    def asked_again(self, session: str, prompt: Ids) -> Ids:
        """Return the prompt with the session's real answers in place of the planned ones."""
        given = self._given.get(session)
        if not given:
            return prompt
        return render(
            Message(message.role, given.get(message.ids, message.ids))
            if message.role is Role.ASSISTANT
            else message
            for message in messages_of(prompt)
        )

    def answered(self, session: str, planned: Ids, given: Ids) -> None:
        """Note what was given in place of what was planned."""
        self._given.setdefault(session, {})[planned] = given


def calls(load: Load, rng: Random) -> Iterator[Call]:
    """Yield the calls of a load in the order of arrival."""
    requests = load.traffic.requests
    step = max(1, len(requests) // (load.over_long + 1))
    for number, request in enumerate(requests):
        call = _call(request, rng)
        if load.over_long and number % step == step - 1 and number // step < load.over_long:
            call.prompt = _over_long(load, request, rng)
            call.leaves_s = float("inf")
        yield call


def _call(request: SampleRequest, rng: Random) -> Call:
    own = tuple(number for number in request.response_ids if number != IM_END)
    seconds = (request.ts_end - request.ts_first) / max(len(own), 1)
    leaves = rng.random() < LEAVES_CHANCE
    return Call(
        request_id=request.request_id,
        tenant=request.tenant,
        session=request.session,
        model=request.model,
        prompt=request.prompt_ids,
        own=own,
        arrives_s=request.ts,
        seconds_per_token=seconds,
        leaves_s=request.ts + rng.uniform(0.5, 4.0) if leaves else float("inf"),
        stops=request.finish_reason == "stop",
    )


def _over_long(load: Load, request: SampleRequest, rng: Random) -> Ids:
    """Return a long document that nobody else has, under the request's question."""
    length = int(load.limit_tokens * rng.uniform(*OVER_LONG_TOKENS))
    document = tuple(load.traffic.language.prose.write(rng, length))
    *before, last = messages_of(request.prompt_ids)
    return render([*before, Message(last.role, (*last.ids, *document))])
