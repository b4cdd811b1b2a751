"""A scheduler of vLLM that ignores salts, so that tenants share what is cached: a fault to be seen.

Loaded by the engine (`--scheduler-cls`), in its own environment.
"""

from typing import Any

from vllm.v1.core.sched.async_scheduler import (  # type: ignore[import-not-found]
    AsyncScheduler,
)


class UnsaltedScheduler(AsyncScheduler):  # type: ignore[misc]
    """The engine's own scheduler, which hashes every prompt as if it had no salt."""

    def add_request(self, request: Any) -> None:
        request.cache_salt = None
        request.block_hashes.clear()
        request.update_block_hashes()
        super().add_request(request)
