"""What clients of an engine ask in a test, and the ids and endings that they remember."""

from dataclasses import dataclass, field
from random import Random
from typing import Final

import httpx

from tests.engine.server import MODEL

TENANTS: Final = ("acme", "globex", "initech", "umbrella")
WORDS: Final = (
    *("import", "class", "return", "yield", "lambda", "raise", "except", "finally", "global"),
    *("assert", "tuple", "buffer", "socket", "thread", "signal", "module", "encode", "locale"),
)
LONG_WORDS: Final = 1_200
"""Words of a prompt that no context of 512 tokens holds."""


@dataclass(slots=True)
class Asked:
    """One request as its client knows it."""

    tenant: str
    request_id: str
    status: int
    prompt_ids: list[int] = field(default_factory=list)
    response_ids: list[int] = field(default_factory=list)


class Clients:
    """Clients of four tenants that take turns; the same seed asks the same."""

    def __init__(self, client: httpx.Client, *, seed: int) -> None:
        self._client = client
        self._random = Random(seed)
        self._number = 0

    def complete(self) -> Asked:
        """Ask for a completion and for the ids of both sides."""
        return self._asked("/v1/completions", prompt=self._text(40))

    def chat(self) -> Asked:
        """Chat without a stream."""
        return self._asked("/v1/chat/completions", messages=self._messages())

    def over_long(self) -> Asked:
        """Send a prompt that no context holds."""
        return self._asked("/v1/completions", prompt=self._text(LONG_WORDS))

    def greedy(self) -> Asked:
        """Ask for more output than the context has room for."""
        return self._asked("/v1/completions", prompt=self._text(5), max_tokens=5_000)

    def leave(self) -> Asked:
        """Begin a stream and go away after its first piece."""
        tenant, body = self._body(messages=self._messages(), max_tokens=400, stream=True)
        body["ignore_eos"] = True
        with self._client.stream("POST", "/v1/chat/completions", json=body) as answer:
            next(answer.iter_lines())
        return Asked(tenant, f"chatcmpl-{body['request_id']}", answer.status_code)

    def _asked(self, path: str, **more: object) -> Asked:
        tenant, body = self._body(**more)
        answer = self._client.post(path, json=body)
        kind = "cmpl-{}-0" if path == "/v1/completions" else "chatcmpl-{}"
        asked = Asked(tenant, kind.format(body["request_id"]), answer.status_code)
        if answer.is_success:
            said = answer.json()
            choice = said["choices"][0]
            asked.prompt_ids = said.get("prompt_token_ids") or choice["prompt_token_ids"]
            asked.response_ids = choice["token_ids"]
        return asked

    def _body(self, **more: object) -> tuple[str, dict[str, object]]:
        """Return whose request it is, and what all requests have; the id stands in every line."""
        self._number += 1
        tenant = TENANTS[self._number % len(TENANTS)]
        common = {
            "model": MODEL,
            "request_id": f"{tenant}-{self._number:04}",
            "user": tenant,
            "max_tokens": 24,
            "seed": self._number,
            "return_token_ids": True,
        }
        return tenant, common | more

    def _messages(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self._text(30)}]

    def _text(self, words: int) -> str:
        return " ".join(self._random.choices(WORDS, k=words))
