"""What happens in the installation that the boards show: traffic, a bleed, faults, losses."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import httpx
import yaml

from dashboards.alerts import ARRIVED
from ingest.broker import Message
from ingest.kafka_io import KafkaPublisher
from ingest.kafka_settings import KafkaSettings
from ingest.topics import topic_names
from tests.dashboards.kit import RULES, Json, filled
from tests.dashboards.parts import ENGINE, PARTS, TENANT, Site, running
from tests.e2e.traffic import pairs, row
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.sglang_log import received
from tests.fakes.http_engine import EngineOptions, HttpEngine, http_engine
from tests.scenarios.run import language
from tests.services.prometheus import Prometheus, Series, prometheus
from tests.streams.process import until
from tests.unit.kv_publisher import Publisher, batch, stored

NO_TOKEN: Final = 2**30
"""More than any vocabulary has."""

UNSAID: Final = 4
"""Requests with an answer of no ids: some in a hundred."""

POOL_TOKENS: Final = 4_096
LEAKED_TOKENS: Final = 3_800
"""What a request reserves that is then aborted: over nine tenths of the pool."""

BLED: Final = 6
"""Requests through the tap: an answer quotes what it reads in half of the cases."""

PAIRS: Final = 40

FIRES: Final = frozenset(
    {
        "BleedwatchBleed",
        "BleedwatchOverlapRising",
        "BleedwatchUnreleasedMemory",
        "BleedwatchClearFailure",
        "BleedwatchMetadataMismatch",
        "BleedwatchPoolPressure",
        "BleedwatchBlind",
        "BleedwatchIncomplete",
        "BleedwatchTapBlind",
        "BleedwatchSpoolDrops",
        "BleedwatchUnreadable",
    }
)
"""What must fire in this scene; those of the others that need hours or a death do elsewhere."""

STEP_S: Final = 1.0
"""Between two points of an answer."""

ALERTS_S: Final = 60.0
"""They take seconds, on a machine that may be busy."""

SAID: Final = (
    "Cache not flushed because there are pending requests. #queue-req: 0",
    "Context corruption detected: Request r-1 (bootstrap_room=7) received metadata from "
    "bootstrap_room=8. Metadata buffer index: 7. This indicates metadata buffer index collision.",
    "Decode transfer failed for request rank=0 decode_req.req.rid='r-2' "
    "decode_req.req.bootstrap_room=9 with exception KVTransferError(bootstrap_room=9): Failed due "
    "to an unknown reason from another rank",
)
"""What SGLang says of a clear that failed, of another request's metadata, of a failed transfer."""


HEALTH_CHECK: Final = Call(
    request_id="HEALTH_CHECK_1", tenant="", session="", model="m", prompt=(0,), own=(),
    arrives_s=0.0, seconds_per_token=0.0,
)  # fmt: skip
"""A request of the engine's own, which is of no interest."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was scraped while it all happened."""

    prometheus: Prometheus
    began_s: float
    ended_s: float
    alerts: list[Json]
    """Those that fired when all did that must."""

    def ask(self, expr: str) -> list[Series]:
        """Return what an expression of a board or a rule had, with Grafana's variables put in."""
        return self.prometheus.range(
            filled(expr), start_s=self.began_s, end_s=self.ended_s, step_s=STEP_S
        )


def at_once(folder: Path) -> list[Path]:
    """Return the rules without their holds and intervals: what holds for minutes fires at once."""
    made = []
    for path in RULES:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in document["groups"]:
            group.pop("interval", None)
            for rule in group["rules"]:
                rule.pop("for", None)
        made.append(folder / path.name)
        made[-1].write_text(yaml.safe_dump(document))
    return made


@contextmanager
def played(folder: Path, *, kafka: str, prefix: str) -> Iterator[Seen]:
    """Play the scene and give what Prometheus has of it."""
    options = EngineOptions(
        pool_tokens=POOL_TOKENS, context_tokens=POOL_TOKENS, bugs={Bug.BATCH_ROW_REUSED}
    )
    with (
        Publisher() as kv,
        http_engine(language(), options) as engine,
        running(folder, kafka=kafka, prefix=prefix, engine=engine.url, kv=kv.endpoint) as site,
        prometheus(
            folder / "prometheus",
            targets={part: [site.url(part).removeprefix("http://")] for part in PARTS},
            rules=at_once(folder),
        ) as watching,
    ):
        until(lambda: bool(watching.query(f"count(up == 1) == {len(PARTS)}")))
        began_s = time.time()
        kv.wait_for_reader()
        _logs(site)
        _through_the_tap(site)
        _pushes(site)
        _kv_events(kv)
        _garbage(site)
        _leak(site, engine)
        fired = _fired(watching)
        engine.close()
        _ask(site, "acme", "Is anybody there?")
        # Two scrapes make a rate; the api looks at its store every ten seconds.
        for expr in (
            "bleedwatch_tap_engine_errors_total[5m]",
            "bleedwatch_outbox_notifications[5m]",
            f"{ARRIVED}[5m]",
        ):
            until(lambda expr=expr: bool(watching.query(f"count_over_time({expr}) > 1")))  # type: ignore[misc]
        # of the last step, which may lie ahead, both scrapes are past
        yield Seen(watching, began_s, time.time() + STEP_S, fired)


def _fired(watching: Prometheus) -> list[Json]:
    """Wait until everything that must fire does, and return what does."""
    until_s = time.monotonic() + ALERTS_S
    while missing := FIRES - {one["labels"]["alertname"] for one in watching.firing()}:
        assert time.monotonic() < until_s, f"silent: {sorted(missing)}"
        time.sleep(0.2)
    return watching.firing()


def _logs(site: Site) -> None:
    """Write requests, some that nobody can use, and what an engine says of its memory."""
    now_s = time.time()
    made = pairs(PAIRS)
    first = now_s - max(one.ts_end for one in made)
    rows = [
        row(
            replace(
                one, ts=one.ts + first, ts_first=one.ts_first + first, ts_end=one.ts_end + first
            )
        )
        for one in made
    ]
    whole = rows[-1]
    nobodys = {**whole, "request_id": "nobodys", "tenant": None}
    without = {**whole, "request_id": "without", "response_ids": None, "prompt_ids": None}
    unsaid = [{**whole, "request_id": f"unsaid-{at}", "response_ids": []} for at in range(UNSAID)]
    lines = [json.dumps(one) for one in (*rows, nobodys, without, *unsaid)]
    with site.log.open("a") as log:
        log.write("\n".join([*lines, "{broken", ""]))
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now_s))
    with site.engine_log.open("a") as log:
        log.write("".join(f"[{moment}] {message}\n" for message in SAID))
        log.write(f"{received(HEALTH_CHECK, 0.0)}\n")


def _through_the_tap(site: Site) -> None:
    """Let two tenants ask an engine that mixes up the rows of a batch; then one that is unread."""
    random = Random(5)
    for number in range(BLED):
        words = language().prose.write(random, 150)
        _ask(site, ("acme", "globex")[number % 2], language().tokenizer.decode(words))
    httpx.post(f"{site.url('proxy')}/v1/completions", content=b"no JSON", headers={TENANT: "acme"})
    httpx.get(f"{site.url('proxy')}/v1/models")


def _ask(site: Site, tenant: str, text: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 96}
    url = f"{site.url('proxy')}/v1/chat/completions"
    httpx.post(url, json=body, headers={TENANT: tenant}, timeout=30)


def _leak(site: Site, engine: HttpEngine) -> None:
    """Let a client go away from an engine that does not release what it held for him."""
    engine.serving.pool.clear_cache()
    engine.options.bugs.add(Bug.UNRELEASED_AFTER_ABORT)
    engine.options.delay_s = 0.02
    body = {"model": "m", "prompt": "tell me", "max_tokens": LEAKED_TOKENS, "ignore_eos": True}
    url = f"{site.url('proxy')}/v1/completions"
    with httpx.stream(
        "POST", url, json=body | {"stream": True}, headers={TENANT: "acme"}, timeout=30
    ) as answer:
        next(answer.iter_bytes())


def _pushes(site: Site) -> None:
    """Push a request, one without a tenant, one without ids, and one that is none."""
    now_ms = int(time.time() * 1_000)
    whole = {
        "request_id": "pushed", "tenant": "acme", "engine": ENGINE, "model": "m",
        "started_at_ms": now_ms, "ended_at_ms": now_ms,
        "prompt_ids": list(range(50)), "response_ids": list(range(100, 150)),
    }  # fmt: skip
    without = {name: value for name, value in whole.items() if not name.endswith("_ids")}
    nobodys = {name: value for name, value in whole.items() if name != "tenant"}
    body = {"requests": [whole, without, nobodys, {**whole, "prompt_ids": [NO_TOKEN]}]}
    httpx.post(f"{site.url('push')}/v1/sequences", json=body, timeout=30)


def _kv_events(kv: Publisher) -> None:
    """Publish a block that two tenants get, and what is no event."""
    for number, tenant in enumerate(("acme", "globex")):
        event = stored([1], [1] * 4, extra_keys=[None], session_id=tenant)
        kv.send(number, batch(event, at_s=time.time()))
    kv.send(2, b"\xc1")


def _garbage(site: Site) -> None:
    """Send records that nobody can read to the worker and to the api."""
    publisher = KafkaPublisher(KafkaSettings(bootstrap_servers=site.kafka))
    for topic in (topic_names(site.prefix).sequences, topic_names(site.prefix).findings):
        publisher.send(Message(topic, b"\xff", b"pool"))
    publisher.flush(60.0)
    publisher.close()
