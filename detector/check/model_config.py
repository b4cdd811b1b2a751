"""A model's config.json: how long a context each engine derives from it, and what else it takes.

The rules are those of vLLM 0.33 (config/model.py) and SGLang 0.5.23 (configs/model_config.py and
utils/hf_transformers/common.py).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from detector.errors import InputError

MAX_BYTES: Final = 16 * 1024 * 1024
"""Quantised models list every layer: some have a megabyte."""

DEFAULT_CONTEXT: Final = 2048
"""What both engines take where no field tells it."""

MOST: Final = 10**12
"""More is no count of tokens, and no factor: it is passed over as text would be."""

_VLLM_KEYS: Final = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
_SGLANG_KEYS: Final = (
    "max_sequence_length", "seq_length", "max_seq_len", "model_max_length",
    "max_position_embeddings",
)  # fmt: skip
_NESTED: Final = ("text_config", "llm_config", "language_config")
_KEPT_BY_VLLM: Final = (
    "su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling",
)  # fmt: skip
_SIGHT_AND_SOUND: Final = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower")

Fields = Mapping[str, object]


@dataclass(frozen=True)
class Context:
    """A context length in tokens, and which field says so."""

    tokens: int
    by: str


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """One config.json. `file` is where it was read."""

    file: str
    fields: Fields

    @property
    def is_multimodal(self) -> bool:
        """True if it takes images, sound or video."""
        return any(self.fields.get(name) for name in _SIGHT_AND_SOUND)

    @property
    def sliding_window(self) -> int | None:
        """Tokens that a layer with a sliding window looks back, None if none has one."""
        text = self._text()
        window = text.get("sliding_window")
        is_used = text.get("use_sliding_window", True)
        return window if isinstance(window, int) and window > 0 and is_used else None

    def context(self, kind: str) -> Context:
        """Return the longest context that an engine takes without being told another one."""
        text = self._text()
        keys = _VLLM_KEYS if kind == "vllm" else _SGLANG_KEYS
        told = [(name, value) for name in keys if (value := _count(text.get(name))) is not None]
        if not told:
            return Context(DEFAULT_CONTEXT, "no field tells it, so the engine's default")
        name, tokens = min(told, key=lambda one: one[1]) if kind == "vllm" else told[0]
        factor = max((_factor(rope, kind, text) for rope in _ropes(text)), default=1.0)
        if factor > 1:
            return Context(
                int(tokens * factor), f"{name} {tokens:,} times a rope factor {factor:g}"
            )
        window = self.sliding_window
        kept = "" if window is None else f", whatever its sliding window of {window:,}"
        return Context(tokens, f"{name} {tokens:,}{kept}")

    def _text(self) -> Fields:
        """Return the fields about text: of multimodal models they are nested."""
        for name in _NESTED:
            nested = self.fields.get(name)
            if isinstance(nested, dict):
                return nested
        return self.fields


def read_model_config(path: str) -> ModelConfig:
    """Read a config.json. Raises InputError for what is none, OSError if it cannot be read."""
    with Path(path).open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    hint = "give the config.json that lies beside the model's weights"
    if len(content) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES:,} bytes", where=path, hint=hint)
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError("not JSON", where=path, hint=hint) from None
    if not isinstance(fields, dict):
        raise InputError("no JSON object", where=path, hint=hint)
    return ModelConfig(path, fields)


def _ropes(text: Fields) -> Iterator[Fields]:
    """Yield the scalings of positions: one, or one for each kind of layer (transformers 5)."""
    for name in ("rope_scaling", "rope_parameters"):
        rope = text.get(name)
        if isinstance(rope, dict):
            yield from [one for one in rope.values() if isinstance(one, dict)] or [rope]


def _factor(rope: Fields, kind: str, text: Fields) -> float:
    """Return by how much a scaling of positions lengthens the context for an engine, else 1."""
    factor = rope.get("factor")
    name = rope.get("rope_type", rope.get("type"))
    if not isinstance(factor, int | float) or isinstance(factor, bool) or not factor <= MOST:
        return 1.0
    if kind == "vllm":
        is_kept = name in _KEPT_BY_VLLM or "gemma3" in str(text.get("model_type"))
    else:
        is_kept = name == "llama3" or "original_max_position_embeddings" in rope
    return 1.0 if is_kept else float(factor)


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value <= MOST else None
