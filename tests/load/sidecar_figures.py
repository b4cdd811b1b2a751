"""Measures a sidecar: tokens a second of one core for each format, and its footprint at a rate.

python -m tests.load.sidecar_figures [SECONDS]
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

from detector.signals import signals_of
from tests.kafka.cluster import running
from tests.sidecar.process import SidecarProcess, Site
from tests.unit.sidecars import Station

PROMPT_TOKENS: Final = 1_000
RESPONSE_TOKENS: Final = 500
REQUEST_TOKENS: Final = PROMPT_TOKENS + RESPONSE_TOKENS
VOCABULARY: Final = 150_000
REQUESTS: Final = 400
RATE: Final = 10_000
"""Tokens a second at which the footprint is measured."""

TICK_S: Final = 0.05
VLLM: Final = "(APIServer pid=1) {level} 11-29 18:00:21 [request_logger.py:{line}] "


def ids(chance: Random, count: int) -> list[int]:
    """Return made-up token ids."""
    return [chance.randrange(VOCABULARY) for _ in range(count)]


def sglang_lines(chance: Random, number: int) -> Iterator[str]:
    """Yield the two lines of a request in SGLang's JSON request log at level 3."""
    rid = f"req-{number:08d}"
    obj = {"rid": rid, "input_ids": ids(chance, PROMPT_TOKENS), "sampling_params": {}}
    line = {
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "event": "request.received",
        "rid": rid,
        "obj": obj,
        "headers": {"x-tenant-id": f"t{number % 7}"},
    }
    yield json.dumps(line)
    meta = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": RESPONSE_TOKENS}
    out = {"text": "word " * RESPONSE_TOKENS, "output_ids": ids(chance, RESPONSE_TOKENS)}
    yield json.dumps(
        {**line, "event": "request.finished", "out": {**out, "meta_info": {"id": rid, **meta}}}
    )


def vllm_lines(chance: Random, number: int) -> Iterator[str]:
    """Yield a streamed request as vLLM logs it at DEBUG: two lines for every token."""
    name = f"chatcmpl-req-{number:08d}"
    debug, info = VLLM.format(level="DEBUG", line=88), VLLM.format(level="INFO", line=65)
    body = json.dumps({"user": f"t{number % 7}"})
    yield f"{debug}Request req-{number:08d} JSON body: {body}"
    text, prompt = repr("word " * 900), ids(chance, PROMPT_TOKENS)
    yield (
        f"{debug}Request {name} details: prompt: {text}, prompt_token_ids: {prompt}, "
        "prompt_embeds shape: None."
    )
    params = f"SamplingParams(n=1, max_tokens={RESPONSE_TOKENS})"
    yield f"{info}Received request {name}: params: {params}, lora_request: None."
    answer = f"Generated response {name} (streaming"
    for token in ids(chance, RESPONSE_TOKENS):
        yield f"{debug}{answer} delta) details: output_token_ids: [{token}]"
        yield f"{info}{answer} delta): output: 'word ', finish_reason: None"
    yield f"{info}{answer} delta): output: '', finish_reason: length"
    yield f"{info}{answer} complete): output: 'word', finish_reason: length"


WRITERS: Final = {"sglang": sglang_lines, "vllm": vllm_lines}


def rate(log_format: str) -> None:
    """Print how many tokens a second of CPU time pass from a log to a broker in memory."""
    chance = Random(1)
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "server.log"
        lines = (one for n in range(REQUESTS) for one in WRITERS[log_format](chance, n))
        log.write_text("".join(f"{line}\n" for line in lines))
        station = Station(Path(name), str(log), format=log_format, checkpoint_ms=1_000)
        sidecar = station.start(signals_of=signals_of(station.settings)).sidecar
        began = time.process_time()
        while sidecar.turn():
            pass
        spent = time.process_time() - began
        tokens = sidecar.sending.tokens
        station.stop()
        read = next(iter(sidecar.inputs)).coverage.lines
        print(
            f"{log_format}: {tokens / spent:,.0f} tokens a second of one core, "
            f"{tokens * RESPONSE_TOKENS / REQUEST_TOKENS / spent:,.0f} of them generated, "
            f"{read / spent:,.0f} lines"
        )


def footprint(seconds: float) -> None:
    """Print memory and CPU share of a process that is sent RATE tokens a second through Kafka."""
    chance = Random(2)
    requests = ["".join(f"{line}\n" for line in sglang_lines(chance, n)) for n in range(REQUESTS)]
    with (
        tempfile.TemporaryDirectory(prefix="bleedwatch-figures-") as name,
        running(Path(name) / "kafka") as server,
    ):
        site = Site(Path(name), server.bootstrap, "figures", log_format="sglang")
        sidecar = SidecarProcess(site, Path(name) / "stderr")
        try:
            sidecar.await_start()
            with site.log.open("a", buffering=1) as log:
                feed(log.write, requests, 3.0)  # past what the start costs
                before, began = sidecar.usage(), time.monotonic()
                written = feed(log.write, requests, seconds)
                after, took = sidecar.usage(), time.monotonic() - began
            assert sidecar.stop() == 0
        finally:
            sidecar.kill()
    share = (after.cpu_s - before.cpu_s) / took
    print(
        f"at {written / took:,.0f} tokens a second: {share:.1%} of a core, "
        f"{after.resident_bytes / 2**20:.0f} MiB resident"
    )


def feed(write: Callable[[str], object], requests: list[str], seconds: float) -> int:
    """Write requests at the rate, flushed line by line; return how many tokens that were."""
    began, count = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        while count * REQUEST_TOKENS < passed * RATE:
            write(requests[count % len(requests)])
            count += 1
        time.sleep(TICK_S)
    return count * REQUEST_TOKENS


if __name__ == "__main__":
    for known in WRITERS:
        rate(known)
    footprint(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
