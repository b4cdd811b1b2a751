"""Clients of the engines: tenants' requests with natural text, and what came back."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import httpx

from detector.sample.language import Ids, load_language
from detector.sample.traffic import SampleRequest, Traffic, TrafficSettings, generate
from tests.cluster.site import ENGINES, Site

SEED: Final = 29
HISTORY: Final = 400
"""Requests of the day before."""

ANSWER_TOKENS: Final = 64
PATIENCE_S: Final = 20.0
"""How long a client waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it was sent, at `sent_s` (Unix). `answer` is empty if there was none."""

    engine: str
    request_id: str
    tenant: str
    sent_s: float
    prompt: Ids
    status: int
    answer: Ids


def sample(requests: int) -> Traffic:
    """Return so many requests of twelve tenants to three engines, and those of the day before."""
    settings = TrafficSettings(
        engines=len(ENGINES), requests=requests, duration_s=float(requests),
        history_requests=HISTORY,
    )  # fmt: skip
    return generate(Random(SEED), load_language(), settings)


def ask(
    site: Site,
    engine: str,
    *,
    tenant: str,
    request_id: str,
    prompt: Sequence[int],
    max_tokens: int = ANSWER_TOKENS,
    to_the_end: bool = False,
    patience_s: float = PATIENCE_S,
) -> Asked:
    """Send one request; `to_the_end` does not let the answer end by itself.

    A client that runs out of patience goes away, which aborts the request; one whose engine is
    away has status 0.
    """
    body: dict[str, object] = {"prompt": list(prompt), "max_tokens": max_tokens}
    path = "/v1/completions"
    headers = {"x-tenant-id": tenant, "x-request-id": request_id}
    if ENGINES[engine] == "sglang":
        path = "/generate"
        sampling = {"max_new_tokens": max_tokens, "ignore_eos": to_the_end}
        body = {"input_ids": list(prompt), "rid": request_id, "sampling_params": sampling}
    else:
        body |= {"ignore_eos": to_the_end, "return_token_ids": True}
    status, said, sent_s = 0, {}, time.time()
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.post(
            site.engine_url(engine) + path, json=body, headers=headers, timeout=patience_s
        )
        status, said = answer.status_code, answer.json()
    ids = said.get("output_ids") or (said.get("choices") or [{}])[0].get("token_ids") or ()
    return Asked(
        engine=engine, request_id=request_id, tenant=tenant, sent_s=sent_s, prompt=tuple(prompt),
        status=status, answer=tuple(ids),
    )  # fmt: skip


class Clients:
    """Sends sample traffic to every engine at a rate, one thread for each engine, again and again.

    `asked` holds what was sent, by engine, in order.
    """

    def __init__(self, site: Site, traffic: Traffic, *, each_s: float) -> None:
        self.asked: dict[str, list[Asked]] = {engine: [] for engine in ENGINES}
        self._site, self._each_s = site, each_s
        self._ended = threading.Event()
        self._pauses: Mapping[str, threading.Lock] = {name: threading.Lock() for name in ENGINES}
        by_engine = {name: [r for r in traffic.requests if r.node == name] for name in ENGINES}
        self._threads = [
            threading.Thread(target=self._send, args=(name, requests), name=f"clients-{name}")
            for name, requests in by_engine.items()
        ]

    @property
    def answered(self) -> int:
        """Requests that got an answer so far."""
        return sum(one.status == 200 for asked in self.asked.values() for one in asked)

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let the last requests finish."""
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    @contextlib.contextmanager
    def pause(self, engine: str) -> Iterator[None]:
        """Send nothing to an engine for the time of a block, after what is in flight."""
        with self._pauses[engine]:
            yield

    def _send(self, engine: str, requests: list[SampleRequest]) -> None:
        began = time.monotonic()
        for number, one in enumerate(itertools.cycle(requests)):
            if self._ended.wait(max(0.0, began + number * self._each_s - time.monotonic())):
                return
            with self._pauses[engine]:
                answered = ask(
                    self._site, engine, tenant=str(one.tenant),
                    request_id=f"{one.request_id}-{number}",
                    prompt=one.prompt_ids,
                )  # fmt: skip
            self.asked[engine].append(answered)
