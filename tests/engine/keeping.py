"""A scheduler of vLLM that never gives back the KV blocks of some requests: the fault to be seen.

Loaded by the engine (`--scheduler-cls`), in its own environment.
"""

import json
import os
from typing import Any

from vllm.v1.core.sched.async_scheduler import (  # type: ignore[import-not-found]
    AsyncScheduler,
)

from tests.engine.fault import KEEP_EVERY, KEPT


class KeepingScheduler(AsyncScheduler):  # type: ignore[misc]
    """The engine's own scheduler, but for the blocks that it forgets to free."""

    _finished = 0

    def _free_request_blocks(self, request: Any) -> None:
        self._finished += 1
        if self._finished % int(os.environ[KEEP_EVERY]):
            super()._free_request_blocks(request)
            return
        blocks = self.kv_cache_manager.pop_blocks_for_free(request)
        kept = {"request": request.request_id, "blocks": [one.block_id for one in blocks]}
        with open(os.environ[KEPT], "a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")
