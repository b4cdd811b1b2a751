"""Bodies and stream events of one job, as vLLM 0.33 and SGLang 0.5.23 shape them."""

from collections.abc import Sequence
from typing import Any

from detector.sample.tokenizer import IM_END, Tokenizer
from tests.fakes.serving import Job

Body = dict[str, Any]

CREATED = 1_790_000_000
"""When every answer says that it was made: bodies of two runs can be compared."""


class Bodies:
    """Shapes answers of one engine kind for one request; `asked` is the request's body."""

    def __init__(
        self, kind: str, tokenizer: Tokenizer, job: Job, asked: Body, *, chat: bool
    ) -> None:
        self._is_vllm, self._tokenizer, self._job = kind == "vllm", tokenizer, job
        self._asked, self._chat = asked, chat
        self._wants_ids = bool(asked.get("return_token_ids"))
        self._sent = 0

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens without the end marker."""
        return self._tokenizer.decode(number for number in ids if number != IM_END)

    def whole(self) -> Body:
        """Return the body of an answer that is not streamed."""
        job = self._job
        said = self.text(job.output)
        choice: Body = {"index": 0, "logprobs": None, "finish_reason": job.finish_reason}
        choice |= (
            {"message": {"role": "assistant", "content": said}} if self._chat else {"text": said}
        )
        choice |= self._stop()
        body = self._head("chat.completion" if self._chat else "text_completion")
        body |= {"choices": [choice], "usage": self.usage()}
        if self._wants_ids:
            outer = body if self._is_vllm and self._chat else choice
            outer["prompt_token_ids"] = list(job.prompt)
            is_sglang_chat = not self._is_vllm and self._chat
            choice["response_token_ids" if is_sglang_chat else "token_ids"] = list(job.output)
        elif self._is_vllm:
            choice["token_ids"] = None
        return body | self._sglext()

    def first(self) -> Body | None:
        """Return the event that opens a chat stream; completions have none."""
        if not self._chat:
            return None
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
        event = self._head("chat.completion.chunk")
        event["choices"] = [choice | {"finish_reason": None}]
        if self._wants_ids:
            event["prompt_token_ids"] = list(self._job.prompt)
            self._sent = 1
        return event

    def next(self, ids: Sequence[int], *, is_last: bool) -> Body:
        """Return the event for the next tokens."""
        said = self.text(ids)
        choice: Body = {"index": 0}
        choice |= {"delta": {"content": said}} if self._chat else {"text": said}
        choice |= {"logprobs": None, "finish_reason": self._job.finish_reason if is_last else None}
        choice |= self._stop()
        if self._wants_ids:
            choice["token_ids"] = list(ids)
            if not self._sent:
                choice["prompt_token_ids"] = list(self._job.prompt)
        self._sent += 1
        event = self._head("chat.completion.chunk" if self._chat else "text_completion")
        return event | {"choices": [choice]}

    def last(self) -> list[Body]:
        """Return the events after the last token: ids in the extension, usage if asked for."""
        object_name = "chat.completion.chunk" if self._chat else "text_completion"
        head = self._head(object_name) | {"choices": []}
        events = [head | extension] if (extension := self._sglext()) else []
        if (self._asked.get("stream_options") or {}).get("include_usage"):
            events.append(head | {"usage": self.usage()})
        return events

    def generated(self) -> Body:
        """Return what SGLang's own endpoint says of the answer so far."""
        job = self._job
        body: Body = {"text": self.text(job.output), "output_ids": list(job.output)}
        reason: Body | None = None
        if job.finish_reason == "stop":
            reason = {"type": "stop", "matched": IM_END}
        elif job.finish_reason:
            reason = {"type": job.finish_reason, "length": len(job.output)}
        body["meta_info"] = {
            "id": job.request_id,
            "finish_reason": reason,
            "prompt_tokens": job.told_prompt_tokens,
            "completion_tokens": len(job.output),
            "cached_tokens": job.cached_tokens,
        }
        if self._asked.get("return_prompt_token_ids"):
            body["prompt_token_ids"] = list(job.prompt)
        return body

    def usage(self) -> Body:
        """Return the counts of tokens as the engine believes them."""
        job = self._job
        return {
            "prompt_tokens": job.told_prompt_tokens,
            "total_tokens": job.told_prompt_tokens + len(job.output),
            "completion_tokens": len(job.output),
            "prompt_tokens_details": {"cached_tokens": job.cached_tokens},
        }

    def _head(self, object_name: str) -> Body:
        model = self._asked.get("model", "")
        return {
            "id": self._job.request_id, "object": object_name, "created": CREATED, "model": model,
        }  # fmt: skip

    def _stop(self) -> Body:
        if self._is_vllm:
            return {"stop_reason": None}
        return {"matched_stop": IM_END if self._job.finish_reason == "stop" else None}

    def _sglext(self) -> Body:
        extension: Body = {}
        if not self._is_vllm and self._asked.get("return_input_ids_in_sglext"):
            extension["input_ids"] = list(self._job.prompt)
        if not self._is_vllm and self._asked.get("return_output_ids_in_sglext"):
            extension["output_ids"] = [list(self._job.output)]
        return {"sglext": extension} if extension else {}


def error(message: str, status: int) -> Body:
    """Return the body of a refusal."""
    kind = {404: "NotFoundError", 401: "Unauthorized"}.get(status, "BadRequestError")
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def over_long(kind: str, prompt_tokens: int, limit_tokens: int) -> str:
    """Return the sentence with which each engine refuses a prompt."""
    if kind == "vllm":
        return (
            f"This model's maximum context length is {limit_tokens} tokens. However, your prompt "
            f"contains {prompt_tokens} input tokens, which exceeds this limit even without any "
            "output tokens. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={prompt_tokens})"
        )
    return (
        f"Input length ({prompt_tokens} tokens) exceeds the maximum allowed length "
        f"({limit_tokens} tokens). Use a shorter input or enable --allow-auto-truncate."
    )
