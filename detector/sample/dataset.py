"""Writes sample traffic with its planted bleeds as an evaluation set: a folder of JSON lines."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import zstandard

from detector.model import Role
from detector.sample.bleeds import BleedSpec, Planted, Planter, plant
from detector.sample.language import Language
from detector.sample.sharing import Sharing
from detector.sample.traffic import EVAL_SETTINGS, SampleRequest, Traffic, TrafficSettings, generate
from detector.sample.truth import RESPONSE_ROLE, BleedKind, TruthRow

LENGTHS = (10, 12, 16, 24, 32, 48, 64, 128, 256)
PART_KINDS = (
    BleedKind.MID_INSERT,
    BleedKind.MID_OVERWRITE,
    BleedKind.START,
    BleedKind.NOISY_MID,
)
ROLE_ROUND = (RESPONSE_ROLE, Role.USER, RESPONSE_ROLE, RESPONSE_ROLE, Role.USER)
"""Where bleeds of a length come from, in turn; the numbers of kinds and roles are coprime."""

SYSTEM_LENGTHS = (48, 32, 24, 16, 12)
"""Bleeds from system prompts, each of another tenant: few tenants have one of their own."""

MAX_PROMPT_RUN = 64
"""Longer bleeds come from responses: few prompts have so long a stretch of their own."""

WHOLE_RESPONSES = 12
WHOLE_PROMPTS = 6

REPEAT_TENANTS = 2
REPEAT_VICTIMS = 10
REPEAT_TOKENS = 48
"""The overlay: chunks of two tenants' system prompts, each bled into ten responses of others."""

_LEVEL = 6  # a second for the evaluation set; higher levels gain little on decimal ids


def evaluation_specs(per_length: int) -> tuple[BleedSpec, ...]:
    """`per_length` bleeds of every length in `LENGTHS`, whole ones, and some of system prompts.

    Those with little room come first, because bleeds do not share requests: from system
    prompts, whole ones, then long ones.
    """
    kinds = itertools.cycle(PART_KINDS)
    roles = itertools.cycle(ROLE_ROUND)
    parts = []
    for length in sorted(LENGTHS, reverse=True):
        for _ in range(per_length):
            role = next(roles) if length <= MAX_PROMPT_RUN else RESPONSE_ROLE
            parts.append(BleedSpec(kind=next(kinds), role=role, length=length))
    return (
        *(BleedSpec(kind=next(kinds), role=Role.SYSTEM, length=one) for one in SYSTEM_LENGTHS),
        *[BleedSpec(kind=BleedKind.FULL_PROMPT, role=Role.USER)] * WHOLE_PROMPTS,
        *[BleedSpec(kind=BleedKind.FULL_RESPONSE)] * WHOLE_RESPONSES,
        *parts,
    )


def write_dataset(
    seed: int,
    directory: Path,
    *,
    language: Language,
    settings: TrafficSettings = EVAL_SETTINGS,
    per_length: int = 12,
) -> None:
    """Generate traffic from `seed` and write it into `directory`, which is made if missing.

    Files: requests.jsonl.zst (clean), planted.jsonl.zst, truth.jsonl, history.jsonl.zst,
    planted_repeat_overlay.jsonl.zst (changed requests only) with truth_repeat.jsonl, and
    manifest.json. Raises UsageError when the settings leave no room for the bleeds.
    """
    rng = Random(seed)  # noqa: S311 - made-up traffic, no secret
    traffic = generate(rng, language, settings)
    sharing = Sharing((*traffic.history, *traffic.requests))
    planted = plant(rng, traffic, sharing, evaluation_specs(per_length))
    repeated = _repeat_overlay(rng, traffic, sharing)
    directory.mkdir(parents=True, exist_ok=True)
    overlay = [one for one in repeated.requests if one.request_id in repeated.changed]
    _write_requests(directory / "requests.jsonl.zst", map(_request_row, traffic.requests))
    _write_requests(directory / "planted.jsonl.zst", map(_request_row, planted.requests))
    _write_requests(directory / "history.jsonl.zst", map(_history_row, traffic.history))
    _write_requests(
        directory / "planted_repeat_overlay.jsonl.zst", [_request_row(one) for one in overlay]
    )
    _write_truth(directory / "truth.jsonl", planted.truth)
    _write_truth(directory / "truth_repeat.jsonl", repeated.truth)
    manifest = msgspec.json.encode(_manifest(seed, traffic, planted, repeated))
    (directory / "manifest.json").write_bytes(msgspec.json.format(manifest, indent=1) + b"\n")


def _repeat_overlay(rng: Random, traffic: Traffic, sharing: Sharing) -> Planted:
    planter = Planter(rng, traffic, sharing)
    for _ in range(REPEAT_TENANTS):
        planter.plant_repeat(length=REPEAT_TOKENS, victims=REPEAT_VICTIMS)
    return planter.result()


def _request_row(request: SampleRequest) -> dict[str, Any]:
    return {
        "request_id": request.request_id,
        "ts": request.ts,
        "ts_first": request.ts_first,
        "ts_end": request.ts_end,
        "node": request.node,
        "tenant": request.tenant,
        "model": request.model,
        "session": request.session,
        "prompt_len": len(request.prompt_ids),
        "response_len": len(request.response_ids),
        "finish_reason": request.finish_reason,
        "prompt_ids": request.prompt_ids,
        "response_ids": request.response_ids,
    }


def _history_row(request: SampleRequest) -> dict[str, Any]:
    names = ("request_id", "ts", "tenant", "model", "prompt_ids", "response_ids")
    return {name: getattr(request, name) for name in names}


def _write_requests(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    encoder = msgspec.json.Encoder()
    with zstandard.open(path, "wb", cctx=zstandard.ZstdCompressor(level=_LEVEL)) as file:
        for row in rows:
            file.write(encoder.encode(row) + b"\n")


def _write_truth(path: Path, rows: Iterable[TruthRow]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def _manifest(seed: int, traffic: Traffic, planted: Planted, repeated: Planted) -> dict[str, Any]:
    requests = traffic.requests
    return {
        "set": "sample",
        "seed": seed,
        "tokenizer": "bleedwatch sample tokenizer, ChatML markers of Qwen",
        "vocab_size": len(traffic.language.tokenizer),
        "nodes": traffic.settings.engines,
        "duration_s": traffic.settings.duration_s,
        "requests": len(requests),
        "tenants": len(traffic.tenants),
        "prompt_tokens": sum(len(request.prompt_ids) for request in requests),
        "response_tokens": sum(len(request.response_ids) for request in requests),
        "history_requests": len(traffic.history),
        "planted": len(planted.truth),
        "planted_repeat": len(repeated.truth),
    }
