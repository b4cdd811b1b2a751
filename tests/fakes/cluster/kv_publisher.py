"""KV events as vLLM 0.33 publishes them: stored blocks, and their reuse with its session."""

from collections.abc import Sequence

import msgspec

from tests.fakes.cluster.call import Call
from tests.fakes.cluster.pool import PAGE_TOKENS, BlockKey
from tests.fakes.cluster.recording import Published
from tests.fakes.cluster.sglang_log import EPOCH_S


class KvPublisher:
    """Notes what is published, in order. `with_salt` is false for an engine that drops salts."""

    def __init__(self, engine: str, published: list[Published], *, with_salt: bool) -> None:
        self._engine, self._published, self._with_salt = engine, published, with_salt

    def stored(
        self, now_s: float, call: Call, keys: Sequence[BlockKey], places: Sequence[int]
    ) -> None:
        """Publish the blocks at `places` of a prompt: those that were not cached yet."""
        if places and list(places) == list(range(places[0], places[-1] + 1)):
            self._publish(now_s, call, keys, places)

    def reused(self, now_s: float, call: Call, keys: Sequence[BlockKey]) -> None:
        """Publish the cached blocks of a prompt, as kv_cache_report_mode=full asks for."""
        if keys:
            self._publish(now_s, call, keys, range(len(keys)))

    def _publish(
        self, now_s: float, call: Call, keys: Sequence[BlockKey], places: Sequence[int]
    ) -> None:
        first, last = places[0], places[-1]
        extra: list[list[str] | None] = [None] * len(places)
        if first == 0 and self._with_salt:
            extra[0] = [f"salt-{call.tenant}"]
        event = {
            "type": "BlockStored",
            "block_hashes": list(keys[first : last + 1]),
            "parent_block_hash": keys[first - 1] if first else None,
            "token_ids": list(call.prompt[first * PAGE_TOKENS : (last + 1) * PAGE_TOKENS]),
            "block_size": PAGE_TOKENS,
            "lora_id": None,
            "medium": "GPU",
            "extra_keys": extra,
            "session_id": call.tenant,
        }
        payload = msgspec.msgpack.encode([EPOCH_S + now_s, [event], 0])
        self._published.append(Published(now_s, self._engine, payload))
