"""An HTTP server that answers as an engine does, from texts that a test may change at any time."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Respond = Callable[[BaseHTTPRequestHandler], None]


class EngineServer:
    """Serves `pages` by path: a text answers 200, a function answers by itself, else 404."""

    def __init__(self) -> None:
        self.pages: dict[str, str | Respond] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                server.headers.append(dict(self.headers))
                page = server.pages.get(self.path)
                if callable(page):
                    page(self)
                else:
                    answer(self, 404 if page is None else 200, page or '{"detail":"Not Found"}')

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        return Handler


def answer(handler: BaseHTTPRequestHandler, status: int, body: str | bytes, **more: str) -> None:
    """Send one whole answer; underscores in the names of headers become hyphens."""
    data = body if isinstance(body, bytes) else body.encode()
    handler.send_response(status)
    for name, value in {"Content_Length": str(len(data)), **more}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Answer for as long as somebody reads."""
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b"a" * 65_536)


@contextmanager
def engine_server(**pages: str | Respond) -> Iterator[EngineServer]:
    """Serve until the block ends; `metrics` is the page /metrics, `v1__loads` is /v1/loads."""
    server = EngineServer()
    server.pages = {f"/{name.replace('__', '/')}": page for name, page in pages.items()}
    try:
        yield server
    finally:
        server.close()


VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} %(running)s
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} %(usage)s
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} %(prompts)s
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="101",note="a \\"b\\""} 1.0
"""

SGLANG_LABELS = 'engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"'


def vllm_page(*, running: float = 0.0, usage: float = 0.0, prompts: float = 10.0) -> str:
    """Return metrics as a vLLM of 101 blocks of 16 tokens tells them: 100 blocks are usable."""
    return VLLM % {"running": running, "usage": usage, "prompts": prompts}


def sglang_page(labels: str = SGLANG_LABELS, /, **values: float) -> str:
    """Return metrics as SGLang tells them: `num_running_reqs=1` and so on."""
    return "".join(
        f"# TYPE sglang:{name} gauge\nsglang:{name}{{{labels}}} {value}\n"
        for name, value in values.items()
    )
