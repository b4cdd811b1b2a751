"""Turns one SGLang record into its requests: batches split, ids judged, tenant hints named."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import msgspec

from ingest.sources.base import Loss
from ingest.sources.literals import CUT
from ingest.sources.sglang_lines import AnswerFields, Record, RequestFields

HEALTH_CHECK = "HEALTH_CHECK"
MAX_ID_CHARS = 512
MAX_HINT_CHARS = 4096
_HINTS = ("extra_key", "cache_salt", "session_id", "user", "conversation_id", "routing_key")

Ids = list[int] | None


@dataclass(slots=True)
class Item:
    """One request of a record: `ids`/`loss` are its prompt side."""

    rid: str
    ids: Ids = field(repr=False)
    loss: Loss | None
    identity: dict[str, str] = field(repr=False)
    parent: str | None = None


def items(record: Record) -> Iterator[Item]:
    """Split a record into its requests; one without any id yields nothing."""
    fields = record.fields
    answered = _answered_id(record)
    if isinstance(fields.rid, list):
        rids = [rid if _is_id(rid) else None for rid in fields.rid]
        wanted = [answered] if answered is not None and answered in rids else rids
        parent = rids[0] if rids else None
        for index, rid in enumerate(rids):
            if rid is not None and rid in wanted:
                ids, loss = _batch_prompt(fields, record.answer, index, len(rids))
                yield Item(rid, ids, loss, identity_of(record, index), parent)
        return
    rid = fields.rid if _is_id(fields.rid) else answered
    if rid is not None:
        ids, loss = judge_prompt(fields.input_ids, fields.text, record.answer)
        yield Item(rid, ids, loss, identity_of(record, 0))


def judge_prompt(
    input_ids: object, text: object, answer: AnswerFields | None
) -> tuple[Ids, Loss | None]:
    """Find the prompt ids of one request: in the request object, else in the answer."""
    ids, loss = read_ids(input_ids)
    if ids is None and answer is not None:
        again, again_loss = read_ids(answer.prompt_token_ids)
        if again is not None:
            ids, loss = again, again_loss
    if ids is not None or loss is Loss.TRUNCATED:
        return ids, loss
    return None, Loss.TEXT_ONLY if _is_text(text) else Loss.NOT_LOGGED


def judge_answer(answer: AnswerFields, completion_tokens: int | None) -> tuple[Ids, Loss | None]:
    """Find the answer's ids; whole only if their number is the one the engine counted."""
    ids, loss = read_ids(answer.output_ids)
    if ids is None and loss is None:
        if answer.embedding is not msgspec.UNSET:
            return None, None
        return None, Loss.TEXT_ONLY if _is_text(answer.text) else Loss.NOT_LOGGED
    if loss is None and completion_tokens is not None and completion_tokens != len(ids or ()):
        loss = Loss.DELTAS_LOST
    return ids, loss


def read_ids(value: object) -> tuple[Ids, Loss | None]:
    """Read a list of ids. A shortened list yields its head: the tail's place is not known."""
    if value is CUT:
        return None, Loss.TRUNCATED
    if not isinstance(value, list):
        return None, None
    if value and isinstance(value[0], list) and len(value) == 1:
        value = value[0]
    kinds = set(map(type, value))
    if kinds <= {int}:
        return value, None
    if kinds <= {int, str} and "..." in value:
        head = value[: value.index("...")]
        return (head if str not in map(type, head) else None), Loss.TRUNCATED
    return None, None


def identity_of(record: Record, index: int) -> dict[str, str]:
    """Collect what tenant rules may look at."""
    identity: dict[str, str] = {}
    for name in _HINTS:
        value = getattr(record.fields, name)
        if isinstance(value, list):
            value = value[index] if index < len(value) else None
        _note(identity, name, value)
    labels = record.fields.custom_labels
    if isinstance(labels, dict):
        for name, value in labels.items():
            _note(identity, f"label:{str(name).lower()}", value)
    for name, value in record.headers.items():
        _note(identity, f"header:{str(name).lower()}", value)
    return identity


def samples_in_parallel(fields: RequestFields) -> bool:
    """Say whether `n` > 1: SGLang then finishes under new ids, and these never finish."""
    params = fields.sampling_params
    if isinstance(params, list):
        params = params[0] if params else None
    count = params.get("n") if isinstance(params, dict) else None
    return isinstance(count, int) and count > 1


def meta_of(answer: AnswerFields | None) -> Mapping[str, Any]:
    """Return the answer's meta_info, empty if it has none."""
    if answer is None or not isinstance(answer.meta_info, dict):
        return {}
    return answer.meta_info


def _batch_prompt(
    fields: RequestFields, answer: AnswerFields | None, index: int, count: int
) -> tuple[Ids, Loss | None]:
    per_item = isinstance(fields.input_ids, list) and len(fields.input_ids) == count
    ids = fields.input_ids[index] if per_item else fields.input_ids
    if not per_item and isinstance(fields.input_ids, list):
        ids = CUT  # the list of prompts itself was shortened
    text = fields.text
    if isinstance(text, list):
        text = text[index] if index < len(text) else text and text[0]
    return judge_prompt(ids, text, answer)


def _answered_id(record: Record) -> str | None:
    answered = meta_of(record.answer).get("id")
    return answered if _is_id(answered) else None


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS


def _is_text(value: object) -> bool:
    return value is CUT or isinstance(value, str | list)


def _note(identity: dict[str, str], name: str, value: object) -> None:
    if isinstance(value, str) and 0 < len(value) <= MAX_HINT_CHARS:
        identity[name] = value
