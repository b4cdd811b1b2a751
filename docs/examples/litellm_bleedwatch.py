"""LiteLLM proxy callback that pushes every answered request to a bleedwatch sidecar.

In the proxy's config.yaml: `litellm_settings: {callbacks: litellm_bleedwatch.callback}`, and for
each model `litellm_params: {model: hosted_vllm/..., extra_body: {return_token_ids: true}}`: only
then does vLLM (0.10.2 or later) say which tokens it read and wrote. BLEEDWATCH_URL is the sidecar.
"""

import asyncio
import json
import logging
import os
from urllib.request import Request, urlopen

from litellm.integrations.custom_logger import CustomLogger

URL = os.environ.get("BLEEDWATCH_URL", "http://127.0.0.1:9465")
TOKEN = os.environ.get("BLEEDWATCH_TOKEN")


def requests(kwargs, answer, start, end):
    """Return a request for each choice; LiteLLM keeps what it does not know of a choice aside."""
    payload = kwargs["standard_logging_object"]
    key = payload["metadata"]
    known = {
        "tenant": key.get("user_api_key_team_id") or key.get("user_api_key_hash"),
        "end_user": key.get("user_api_key_end_user_id"),
        "model": payload["model"],
        "engine": payload.get("model_id"),
        "started_at_ms": round(start.timestamp() * 1000),
        "ended_at_ms": round(end.timestamp() * 1000),
        "gateway_cache_hit": bool(payload.get("cache_hit")),
        "prompt_ids": getattr(answer, "prompt_token_ids", None),
    }
    for number, choice in enumerate(answer.choices):
        aside = getattr(choice, "provider_specific_fields", None) or {}
        made = known | {"request_id": answer.id, "response_ids": aside.get("token_ids")}
        made["finish_reason"] = choice.finish_reason
        if number:
            made |= {"request_id": f"{answer.id}-{number}", "parent_id": answer.id}
        yield {name: value for name, value in made.items() if value is not None}


def push(found):
    """Send them; a sidecar that is away must never fail a request, so it is only logged."""
    token = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    head = {"Content-Type": "application/json"} | token
    try:
        body = json.dumps({"requests": found}).encode()
        urlopen(Request(f"{URL}/v1/sequences", body, head), timeout=5).close()
    except OSError as error:
        logging.getLogger(__name__).warning("bleedwatch took nothing: %s", type(error).__name__)


class Bleedwatch(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        await asyncio.to_thread(push, list(requests(kwargs, response_obj, start_time, end_time)))


callback = Bleedwatch()
