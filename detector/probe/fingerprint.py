"""What an engine runs, so that it can be told later whether it still runs that.

Version, model, pool, context, limit and flags; without what is new at every start, and without
what may be a secret.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from detector.advisories.arguments import told_arguments
from detector.doctor.engine_evidence import EngineEvidence
from detector.errors import ScrapeError, SettingsError
from ingest.scrape.documents import at_path, parse_document
from ingest.scrape.exposition import parse_exposition
from ingest.scrape.target import METRICS_PATH, Target

MODELS_PATH: Final = "/v1/models"

CACHE_CONFIG: Final = "vllm:cache_config_info"
"""The labels of this metric are the flags of vLLM's cache: the only ones that it tells."""

_CHANGING: Final = frozenset(
    {
        *("random-seed", "host", "port", "nccl-port", "dist-init-addr", "status"),
        *("available-gpu-mem", "engine", "version"),
    }
)
"""What differs from one start to the next though nobody changed it, and what stands elsewhere."""

_SECRET: Final = re.compile(r"(^|-)(key|keys|token|secret|password|passwd)$")


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The running configuration of one engine; None is not told. Sizes are in tokens."""

    kind: str
    version: str
    model: str = ""
    pool_tokens: int | None = None
    context_tokens: int | None = None
    max_input_tokens: int | None = None
    flags: dict[str, str] = msgspec.field(default_factory=dict)


def fingerprint(target: Target, evidence: EngineEvidence) -> Fingerprint | None:
    """Return what an engine runs, None if it tells nothing. Raises nothing of its own."""
    if evidence.problem is not None or not evidence.samples:
        return None
    sample = evidence.samples[0]
    pools = [one.pool_tokens for one in evidence.samples if one.pool_tokens is not None]
    flags = evidence.flags if evidence.kind == "sglang" else _cache_flags(target)
    return Fingerprint(
        kind=evidence.kind or "",
        version=evidence.version,
        model=model_name(target),
        pool_tokens=min(pools, default=None),
        context_tokens=sample.context_tokens,
        max_input_tokens=sample.max_input_tokens,
        flags=_kept(flags),
    )


def model_name(target: Target) -> str:
    """Return the first model that an engine serves, empty if it tells none."""
    try:
        content = parse_document(target.endpoint.get(MODELS_PATH).body, where=MODELS_PATH)
    except (ScrapeError, SettingsError):
        return ""
    name = at_path(content, "data.0.id")
    return name if isinstance(name, str) else ""


def changes(before: Fingerprint, now: Fingerprint) -> list[str]:
    """Return the names of what is not as it was, in order; never the values."""
    fields = [name for name in before.__struct_fields__ if name != "flags"]
    changed = [name for name in fields if getattr(before, name) != getattr(now, name)]
    names = sorted(before.flags.keys() | now.flags.keys())
    return changed + [f"--{one}" for one in names if before.flags.get(one) != now.flags.get(one)]


def _cache_flags(target: Target) -> Mapping[str, object]:
    try:
        page = target.endpoint.get(METRICS_PATH).body
        series = parse_exposition(page, CACHE_CONFIG.__eq__).samples.get(CACHE_CONFIG, [])
    except (ScrapeError, SettingsError):
        return {}
    return series[0].labels if series else {}


def _kept(told: Mapping[str, object]) -> dict[str, str]:
    return {
        name: " ".join(values) or "on"
        for name, values in sorted(told_arguments(told).items())
        if name not in _CHANGING and not _SECRET.search(name)
    }
