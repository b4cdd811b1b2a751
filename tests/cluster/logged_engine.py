"""An engine over HTTP that writes the log a real one writes, a process of its own.

`python -m tests.cluster.logged_engine vllm|sglang LOG PORT` serves until its standard input ends.
Lines there are orders: `fault NAME` switches a fault on, `sound` switches all off, `skew
SECONDS` lets its clock be ahead. It repeats each order once it is carried out.
"""

import logging
import sys
import time
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from detector.sample.language import Language, load_language
from tests.fakes.cluster import sglang_log, vllm_log
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.sglang_log import EPOCH_S
from tests.fakes.http_bodies import Bodies, Body
from tests.fakes.http_engine import EngineOptions, HttpEngine
from tests.fakes.serving import Job

TOKEN_S: Final = 0.001
"""How long a token takes: answers overlap, and a client can leave in the middle of one."""

CONTEXT_TOKENS: Final = 8_192
POOL_TOKENS: Final = 9_216
"""So small that one long prompt takes nearly all pages, and what others have left in them."""


class LoggedEngine(HttpEngine):
    """Serves, and appends to a log; tenants are those of the header `x-tenant-id`.

    `skew_s` is how far the clock of the log is ahead.
    """

    def __init__(self, options: EngineOptions, language: Language, log: Path, *, port: int) -> None:
        self._log = log.open("a", buffering=1)
        self.skew_s = 0.0
        super().__init__(options, language, port=port)
        self._say((vllm_log if options.kind == "vllm" else sglang_log).started(self._now_s()))

    async def _answer(
        self, request: Request, job: Job, bodies: Bodies, asked: Body, *, is_own: bool = False
    ) -> Response:
        call = self._call(request, job)
        self._say(*self._received(call, job))
        answer = await super()._answer(request, job, bodies, asked, is_own=is_own)
        call.output, call.told_prompt_tokens = job.output, job.told_prompt_tokens
        call.finish_reason, call.cached_tokens = job.finish_reason, job.cached_tokens
        self._say(*self._ended(call))
        return answer

    def _call(self, request: Request, job: Job) -> Call:
        tenant = request.headers.get("x-tenant-id", "")
        return Call(
            request_id=job.request_id.removeprefix("cmpl-").removesuffix("-0"),
            tenant=tenant,
            session=request.headers.get("x-session-id", ""),
            model=self.options.model,
            prompt=tuple(job.prompt),
            own=(),
            arrives_s=self._now_s(),
            seconds_per_token=self.options.delay_s,
        )

    def _received(self, call: Call, job: Job) -> list[str]:
        if self.options.kind == "vllm":
            return vllm_log.received(call, self._now_s())
        lines = [sglang_log.received(call, self._now_s())]
        if len(job.prompt) >= self.serving.limit_tokens:
            limit = self.serving.limit_tokens
            lines.append(sglang_log.over_limit(call, self._now_s(), limit_tokens=limit))
        return lines

    def _ended(self, call: Call) -> list[str]:
        """Return nothing for a request that was refused: no answer is logged."""
        is_vllm = self.options.kind == "vllm"
        if call.finish_reason is None:
            return []
        if call.finish_reason == "abort":
            told = vllm_log.aborted if is_vllm else sglang_log.disconnected
            return [told(call, self._now_s())]
        return (
            vllm_log.finished(call, self._now_s())
            if is_vllm
            else [sglang_log.finished(call, self._now_s())]
        )

    def _say(self, *lines: str) -> None:
        self._log.writelines(f"{line}\n" for line in lines)

    def _now_s(self) -> float:
        return time.time() - EPOCH_S + self.skew_s


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    kind, log, port = arguments
    logging.disable()
    bugs: set[Bug] = set()
    options = EngineOptions(
        kind=kind, bugs=bugs, delay_s=TOKEN_S, pool_tokens=POOL_TOKENS,
        context_tokens=CONTEXT_TOKENS,
    )  # fmt: skip
    engine = LoggedEngine(options, load_language(), Path(log), port=int(port))
    for line in sys.stdin:
        order, *names = line.split()
        if order == "sound":
            bugs.clear()
        elif order == "skew":
            engine.skew_s = float(*names)
        else:
            bugs |= {Bug(name) for name in names}
        print(line, end="", flush=True)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1:])
