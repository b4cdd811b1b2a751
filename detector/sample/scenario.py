"""The demo: ten minutes of three engines' logs with some bleeds in them, and their truth."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec

from detector.model import EngineId, Role
from detector.sample.bleeds import BleedSpec, Planted, Planter
from detector.sample.language import Language, load_language
from detector.sample.sglang_writer import write_sglang_log
from detector.sample.sharing import Sharing
from detector.sample.tokenizer import Tokenizer
from detector.sample.traffic import SampleRequest, TrafficSettings, generate
from detector.sample.truth import BleedKind, TruthRow
from detector.sample.vllm_writer import engine_id, write_vllm_log

DEMO_BLEEDS = (
    BleedSpec(kind=BleedKind.FULL_RESPONSE),
    BleedSpec(kind=BleedKind.FULL_PROMPT, role=Role.USER),
    BleedSpec(kind=BleedKind.NOISY_MID, length=64),
    BleedSpec(kind=BleedKind.START, role=Role.USER, length=48),
    BleedSpec(kind=BleedKind.MID_INSERT, role=Role.SYSTEM, length=32),
    BleedSpec(kind=BleedKind.MID_INSERT, role=Role.USER, length=24),
    BleedSpec(kind=BleedKind.MID_OVERWRITE, length=32),
)
"""One of each sort; a repeated one of `REPEAT_TOKENS` comes on top."""

REPEAT_TOKENS = 40
REPEAT_VICTIMS = 2

DEMO_EPOCH_S = 1_767_268_800.0
"""When the demo's traffic starts unless told otherwise: 2026-01-01 12:00 UTC."""

TENANT_RULES: tuple[dict[str, str], ...] = (
    {"kind": "header", "name": "x-tenant-id"},
    {"kind": "field", "name": "user"},
)
"""How tenants are read from the demo's logs: the rules that `ingest.tenancy` takes."""


class LogFormat(enum.StrEnum):
    """Which engine's log format a file is in."""

    VLLM = "vllm"
    SGLANG = "sglang"


class _LogWriter(Protocol):
    def __call__(
        self,
        path: Path,
        requests: Sequence[SampleRequest],
        *,
        epoch_s: float,
        tokenizer: Tokenizer,
    ) -> None: ...


_WRITERS: dict[LogFormat, _LogWriter] = {
    LogFormat.VLLM: write_vllm_log,
    LogFormat.SGLANG: write_sglang_log,
}
_FORMATS = (LogFormat.VLLM, LogFormat.VLLM, LogFormat.SGLANG)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """The log of one engine, which is one KV pool."""

    engine: EngineId
    format: LogFormat
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Engine logs and what is true about them, with request ids as a reader finds them.

    `requests` are what the logs hold, bleeds included; `history` is the day before, which no
    log holds. Their times are seconds relative to `epoch_s` (Unix seconds).
    """

    seed: int
    epoch_s: float
    logs: tuple[EngineLog, ...]
    requests: tuple[SampleRequest, ...]
    history: tuple[SampleRequest, ...]
    truth: tuple[TruthRow, ...]
    tenant_rules: tuple[dict[str, str], ...] = TENANT_RULES


def demo_scenario(
    seed: int,
    directory: Path,
    *,
    epoch_s: float = DEMO_EPOCH_S,
    language: Language | None = None,
    settings: TrafficSettings | None = None,
) -> Scenario:
    """Write one log per engine into `directory`, made if missing: two of vLLM, one of SGLang.

    The same seed gives the same traffic under one Python release. Raises InputError when the
    standard library's sources are missing, UsageError when settings leave no room for bleeds.
    """
    language = language or load_language()
    rng = Random(seed)  # noqa: S311 - made-up traffic, no secret
    traffic = generate(rng, language, settings or TrafficSettings(engines=len(_FORMATS)))
    planter = Planter(rng, traffic, Sharing((*traffic.history, *traffic.requests)))
    planter.plant_repeat(length=REPEAT_TOKENS, victims=REPEAT_VICTIMS)
    for spec in DEMO_BLEEDS:
        planter.plant(spec)
    planted = planter.result()
    directory.mkdir(parents=True, exist_ok=True)
    logs = []
    for number, engine in enumerate(traffic.engines):
        log_format = _FORMATS[number % len(_FORMATS)]
        path = directory / f"{engine}.{log_format}.log"
        served = [request for request in planted.requests if request.node == engine]
        _WRITERS[log_format](path, served, epoch_s=epoch_s, tokenizer=language.tokenizer)
        logs.append(EngineLog(engine=engine, format=log_format, path=path))
    requests, truth = _as_logged(planted, logs)
    return Scenario(
        seed=seed,
        epoch_s=epoch_s,
        logs=tuple(logs),
        requests=requests,
        history=traffic.history,
        truth=truth,
    )


def _as_logged(
    planted: Planted, logs: Sequence[EngineLog]
) -> tuple[tuple[SampleRequest, ...], tuple[TruthRow, ...]]:
    """Give requests and truth the ids that a reader of the logs finds: vLLM's have a prefix."""
    formats = {log.engine: log.format for log in logs}
    logged = {
        request.request_id: engine_id(request.request_id)
        for request in planted.requests
        if request.node is not None and formats[request.node] is LogFormat.VLLM
    }
    requests = tuple(
        replace(request, request_id=logged.get(request.request_id, request.request_id))
        for request in planted.requests
    )
    truth = tuple(
        msgspec.structs.replace(
            row,
            victim_request_id=logged.get(row.victim_request_id, row.victim_request_id),
            source_request_id=logged.get(row.source_request_id, row.source_request_id),
        )
        for row in planted.truth
    )
    return requests, truth
