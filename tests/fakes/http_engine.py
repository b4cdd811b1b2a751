"""A fake engine over HTTP on loopback: vLLM's or SGLang's API, with faults that can be switched on.

It answers chat and text completions, streamed or not, and SGLang's /generate; token ids on request;
/metrics and the endpoints that tell its limits. A client that goes away aborts its request.
"""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from detector.model import Role
from detector.sample.chatml import Message, render
from detector.sample.language import Language
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.exposition import EngineFigures, sglang_metrics, vllm_metrics
from tests.fakes.http_bodies import Bodies, Body, error, over_long
from tests.fakes.serving import INPUT_MARGIN, SERVED_BUGS, BusyError, Job, RejectedError, Serving

VERSIONS: Final = {"vllm": "0.33.0", "sglang": "0.5.23"}
MARGINS: Final = {"vllm": 0, "sglang": INPUT_MARGIN}
"""How far below context and pool prompts are refused: vLLM takes what leaves room for a token."""

DEFAULT_MAX_TOKENS: Final = 64
_ROLES: Final = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}


@dataclass(kw_only=True)
class EngineOptions:
    """What is served. `delay_s` a token takes, and `bugs`, may be changed while it runs."""

    kind: str = "vllm"
    model: str = "sim-8b"
    version: str = ""
    pool_tokens: int = 65_536
    context_tokens: int = 32_768
    api_key: str | None = None
    delay_s: float = 0.0
    tokens_per_event: int = 1
    bugs: set[Bug] = field(default_factory=set)


class HttpEngine:
    """One running engine; `received` are the requests as they came: path, headers, body.

    `calls` counts all requests, those that only read included.
    """

    def __init__(self, options: EngineOptions, language: Language, *, port: int = 0) -> None:
        if unknown := options.bugs - SERVED_BUGS:
            raise ValueError(f"a single engine cannot have: {', '.join(sorted(unknown))}")
        self.options = options
        self.received: list[tuple[str, dict[str, str], Body]] = []
        self.calls = 0
        self.serving = Serving(
            language,
            pool_tokens=options.pool_tokens,
            context_tokens=options.context_tokens,
            bugs=options.bugs,
            margin_tokens=MARGINS[options.kind],
        )
        self._tokenizer = language.tokenizer
        self._numbers = count()
        self._socket = socket.create_server(("127.0.0.1", port))
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._counted(self._app()), log_config=None, access_log=False, lifespan="off"
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    def _counted(self, app: ASGIApp) -> ASGIApp:
        async def counting(scope: Scope, receive: Receive, send: Send) -> None:
            self.calls += scope["type"] == "http"
            await app(scope, receive, send)

        return counting

    def _app(self) -> Starlette:
        post, get = ["POST"], ["GET"]
        routes = [
            Route("/v1/chat/completions", self._chat, methods=post),
            Route("/v1/completions", self._completion, methods=post),
            Route("/metrics", self._metrics, methods=get),
            Route("/v1/models", self._models, methods=get),
            Route("/health", self._health, methods=get),
        ]
        if self.options.kind == "vllm":
            routes.append(Route("/version", self._version, methods=get))
            routes.append(Route("/reset_prefix_cache", self._reset, methods=post))
        else:
            routes.append(Route("/generate", self._generate, methods=post))
            routes.append(Route("/server_info", self._server_info, methods=get))
            routes.append(Route("/get_server_info", self._server_info, methods=get))
            routes.append(Route("/flush_cache", self._flush, methods=["POST", "GET"]))
            routes.append(Route("/abort_request", self._abort, methods=post))
        return Starlette(routes=routes)

    async def _chat(self, request: Request) -> Response:
        asked = await self._asked(request)
        if not self._is_allowed(request):
            return JSONResponse(error("Unauthorized", 401), 401)
        streams_ids = asked.get("stream") and asked.get("return_token_ids")
        if self.options.kind == "sglang" and streams_ids:
            return JSONResponse(error("return_token_ids is not supported for streams", 400), 400)
        encode = self._tokenizer.encode
        messages = [
            Message(_ROLES.get(one["role"], Role.USER), tuple(encode(_text(one["content"]))))
            for one in asked["messages"]
        ]
        job = self._job(request, asked, render(messages), prefix="chatcmpl-")
        bodies = Bodies(self.options.kind, self._tokenizer, job, asked, chat=True)
        return await self._answer(request, job, bodies, asked)

    async def _completion(self, request: Request) -> Response:
        asked = await self._asked(request)
        if not self._is_allowed(request):
            return JSONResponse(error("Unauthorized", 401), 401)
        job = self._job(request, asked, self._ids(asked["prompt"]), prefix="cmpl-")
        bodies = Bodies(self.options.kind, self._tokenizer, job, asked, chat=False)
        return await self._answer(request, job, bodies, asked)

    async def _generate(self, request: Request) -> Response:
        asked = await self._asked(request)
        given = asked.get("input_ids") or asked.get("text") or ""
        sampling = asked.get("sampling_params") or {}
        flat = {"max_tokens": sampling.get("max_new_tokens")} | sampling | asked
        job = self._job(request, flat, self._ids(given), prefix="")
        bodies = Bodies("sglang", self._tokenizer, job, asked, chat=False)
        return await self._answer(request, job, bodies, asked, is_own=True)

    async def _answer(
        self, request: Request, job: Job, bodies: Bodies, asked: Body, *, is_own: bool = False
    ) -> Response:
        is_stream = bool(asked.get("stream"))
        try:
            self.serving.admit(job)
        except RejectedError as said:
            body = error(over_long(self.options.kind, said.prompt_tokens, said.limit_tokens), 400)
            if is_own and is_stream:  # SGLang answers 200 and says so in the stream
                return _events(iter_of([_event(body)]))
            return JSONResponse(body, 400)
        except BusyError:
            return JSONResponse(error("The request queue is full.", 503), 503)
        if is_stream:
            return _events(self._stream(job, bodies, is_own=is_own))
        await self._run(request, job)
        return JSONResponse(bodies.generated() if is_own else bodies.whole())

    async def _run(self, request: Request, job: Job) -> None:
        """Make the whole answer; the client's going away ends it."""
        is_aborted = True
        try:
            for number, _ in enumerate(self.serving.tokens(job)):
                await asyncio.sleep(self.options.delay_s)
                if not job.is_running or (number % 8 == 0 and await request.is_disconnected()):
                    job.finish_reason = "abort"
                    return
            is_aborted = False
        finally:
            self.serving.end(job, is_aborted=is_aborted)

    async def _stream(self, job: Job, bodies: Bodies, *, is_own: bool) -> AsyncIterator[bytes]:
        is_aborted = True
        waiting: list[int] = []
        try:
            if not is_own and (first := bodies.first()):
                yield _event(first)
            for number in self.serving.tokens(job):
                waiting.append(number)
                await asyncio.sleep(self.options.delay_s)
                if not job.is_running:
                    return
                is_last = job.finish_reason is not None
                if is_last or len(waiting) >= self.options.tokens_per_event:
                    yield _event(
                        bodies.generated() if is_own else bodies.next(waiting, is_last=is_last)
                    )
                    waiting = []
            is_aborted = False
            for event in [] if is_own else bodies.last():
                yield _event(event)
            yield b"data: [DONE]\n\n"
        finally:
            self.serving.end(job, is_aborted=is_aborted)

    def _job(self, request: Request, asked: Body, prompt: Any, *, prefix: str) -> Job:
        number = next(self._numbers)
        if self.options.kind == "vllm":
            given = request.headers.get("x-request-id") or asked.get("request_id")
            name = f"{prefix}{given or f'{number:032x}'}" + ("-0" if prefix == "cmpl-" else "")
        else:
            name = asked.get("rid") or f"{number:032x}"
        return Job(
            request_id=name,
            prompt=prompt or (0,),
            max_tokens=int(
                asked.get("max_tokens") or asked.get("max_completion_tokens") or DEFAULT_MAX_TOKENS
            ),
            salt=f"{asked.get('cache_salt') or ''}|{asked.get('extra_key') or ''}",
            ends_early=not asked.get("ignore_eos"),
        )

    def _ids(self, given: Any) -> list[int]:
        if isinstance(given, list) and given and isinstance(given[0], str):
            given = given[0]
        return self._tokenizer.encode(given) if isinstance(given, str) else list(given)

    async def _asked(self, request: Request) -> Body:
        asked: Body = await request.json()
        self.received.append((request.url.path, dict(request.headers), asked))
        return asked

    def _is_allowed(self, request: Request) -> bool:
        key = self.options.api_key
        return key is None or request.headers.get("authorization") == f"Bearer {key}"

    async def _metrics(self, _: Request) -> Response:
        serving, pool = self.serving, self.serving.pool
        now = EngineFigures(
            model=self.options.model,
            pool_tokens=pool.total_tokens,
            context_tokens=serving.context_tokens,
            used_tokens=pool.used_tokens,
            evictable_tokens=pool.evictable_tokens,
            running=len(serving.running),
            queued=0,
            running_tokens=sum(len(job.prompt) + len(job.output) for job in serving.running),
            prompt_tokens=serving.prompt_tokens,
            requests=serving.finished,
        )
        page = vllm_metrics(now) if self.options.kind == "vllm" else sglang_metrics(now)
        return PlainTextResponse(page)

    async def _models(self, request: Request) -> Response:
        if not self._is_allowed(request):
            return JSONResponse(error("Unauthorized", 401), 401)
        name, context = self.options.model, self.options.context_tokens
        model = {"id": name, "object": "model", "root": name, "max_model_len": context}
        return JSONResponse({"object": "list", "data": [model]})

    async def _health(self, _: Request) -> Response:
        return Response()

    async def _version(self, _: Request) -> Response:
        return JSONResponse({"version": self._engine_version})

    async def _server_info(self, _: Request) -> Response:
        return JSONResponse(
            {
                "version": self._engine_version,
                "model_path": self.options.model,
                "context_length": self.options.context_tokens,
                "max_total_num_tokens": self.serving.pool.total_tokens,
                "max_req_input_len": self.serving.limit_tokens,
                "disaggregation_mode": "null",
            }
        )

    async def _reset(self, _: Request) -> Response:
        return JSONResponse({"success": self.serving.pool.clear_cache()})

    async def _flush(self, _: Request) -> Response:
        is_done = not self.serving.running
        if is_done:  # SGLang makes its allocator anew: what leaked is free again, and forgotten
            options = self.options
            self.serving.pool = type(self.serving.pool)(options.pool_tokens)
        return PlainTextResponse(
            "Cache flushed.\n" if is_done else "Flush cache failed.\n", 200 if is_done else 400
        )

    async def _abort(self, request: Request) -> Response:
        rid = (await request.json()).get("rid", "")
        for job in [one for one in self.serving.running if one.request_id.startswith(rid)]:
            self.serving.end(job, is_aborted=True)
        return Response()

    @property
    def _engine_version(self) -> str:
        return self.options.version or VERSIONS[self.options.kind]


@contextmanager
def http_engine(language: Language, options: EngineOptions | None = None) -> Iterator[HttpEngine]:
    """Serve until the block ends; `language` as load_language gives it."""
    engine = HttpEngine(options or EngineOptions(), language)
    try:
        yield engine
    finally:
        engine.close()


def _text(content: Any) -> str:
    """Return the text of a message whose content may be a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def _event(body: Body) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _events(stream: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(stream, media_type="text/event-stream")


async def iter_of(events: list[bytes]) -> AsyncIterator[bytes]:
    """Yield the events, and the mark that ends a stream."""
    for event in [*events, b"data: [DONE]\n\n"]:
        yield event
