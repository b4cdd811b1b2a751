"""A small plain Faust app that keeps the three rules of the worker, or breaks one of them.

    python -m tests.streams.rules_main '{"bootstrap": ..., "prefix": ..., "broken": "codec"}'

It copies every record to the topic of results. A record that cannot be read is skipped; the batch
with the record `fatal` fails once, the first time that any process meets it. `broken` is one of

- `codec`: values are decoded by Faust instead of in the loop;
- `take`: batches come by `take`, which acknowledges them by itself;
- `escape`: the exception leaves the loop instead of ending the process.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faust
from faust.serializers import codecs


class Strict(codecs.Codec):
    """Text that begins with a number; anything else raises."""

    def _loads(self, data: bytes) -> object:
        int(data.split()[0])
        return data

    def _dumps(self, data: Any) -> bytes:
        return bytes(data)


def make_app(given: dict[str, Any]) -> faust.App:
    broken, prefix = given.get("broken"), given["prefix"]
    codecs.register("strict", Strict())
    app = faust.App(
        f"{prefix}-workers",
        broker=f"kafka://{given['bootstrap']}",
        value_serializer="strict" if broken == "codec" else "raw",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_wait_empty=False,
        broker_session_timeout=6,
        broker_heartbeat_interval=1,
        broker_commit_interval=0.5,
        consumer_auto_offset_reset="earliest",
        producer_acks=-1,
    )
    value_type = None if broken == "codec" else bytes
    source = app.topic(f"{prefix}.sequences", value_type=value_type)

    async def copy(events: Sequence[Any]) -> None:
        for event in events:
            value = event if isinstance(event, bytes) else event.value
            if broken != "codec" and not value.split()[0].isdigit():
                continue
            if value.endswith(b"fatal") and not Path(given["failed"]).exists():
                Path(given["failed"]).touch()
                raise RuntimeError("the first time")
            sent = await app.producer.send(f"{prefix}.findings", None, value, 0, None, {})
            await sent

    async def agent(stream: Any) -> None:
        batches = stream.take if broken == "take" else stream.noack_take
        async for events in batches(10, within=0.1):
            try:
                await copy(events)
            except RuntimeError:
                if broken in {"take", "escape"}:
                    raise
                os._exit(70)
            if broken != "take":
                for event in events:
                    await stream.ack(event)

    app.agent(source, concurrency=1)(agent)
    return app


async def run(given: dict[str, Any]) -> None:
    app = make_app(given)
    app.loop = asyncio.get_running_loop()
    app.finalize()
    await app.maybe_start()
    print(json.dumps({"event": "started"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(run(json.loads(sys.argv[1])))
