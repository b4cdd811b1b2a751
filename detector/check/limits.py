"""The numbers of an engine that decide what fits: context, pool, page, concurrency, input limit."""

from typing import Final, NamedTuple

from detector.check.engine import Engine, Flag, number
from detector.runtime.limits import INPUT_MARGIN

VLLM_BLOCK: Final = 16
"""Tokens of a block of vLLM on GPUs, unless --block-size says otherwise."""

SGLANG_PAGE: Final = 1
"""Tokens of a page of SGLang, unless --page-size or an attention backend says otherwise."""

_CONTEXT: Final = {"sglang": ("context-length",), "vllm": ("max-model-len",)}
_CONCURRENCY: Final = {"sglang": ("max-running-requests",), "vllm": ("max-num-seqs",)}


class Figure(NamedTuple):
    """A number, what says so, and where. `value` is None where nothing that was given tells it."""

    value: int | None
    by: str
    where: str


def context(engine: Engine) -> Figure:
    """Return the longest prompt and answer together, in tokens."""
    if engine.told.context_tokens is not None:
        return Figure(engine.told.context_tokens, "the engine says so", engine.where)
    flag = engine.flag(*_CONTEXT[engine.kind])
    if flag is not None and (count := number(flag.value, engine.kind)) is not None:
        return Figure(count, _given(engine, flag), flag.where)
    if flag is not None:
        return Figure(None, f"{_given(engine, flag)} is no number", flag.where)
    if engine.model is not None:
        known = engine.model.context(engine.kind)
        return Figure(known.tokens, f"the model's {known.by}", engine.model.file)
    return Figure(None, "neither a flag nor a config.json tells it", engine.where)


def is_fitted(engine: Engine) -> bool:
    """Tell whether vLLM chooses the context by the pool that it finds."""
    flag = engine.flag("max-model-len")
    return engine.kind == "vllm" and flag is not None and flag.value in ("auto", "-1")


def pool(engine: Engine) -> Figure:
    """Return the tokens that the KV pool of one rank holds; SGLang rounds down to whole pages."""
    if engine.told.pool_tokens is not None:
        return Figure(engine.told.pool_tokens, "the engine says so", engine.where)
    size = page(engine).value or 1
    name, unit = ("max-total-tokens", 1) if engine.kind == "sglang" else (_BLOCKS, size)
    flag = engine.flag(name)
    if flag is None:
        return Figure(None, "it is what memory is left at the start", engine.where)
    count = number(flag.value, engine.kind)
    if count is None:
        return Figure(None, f"{_given(engine, flag)} is no number", flag.where)
    if unit > 1:
        return Figure(count * unit, f"{_given(engine, flag)} of {unit} tokens", flag.where)
    return Figure(count // size * size, _given(engine, flag), flag.where)


_BLOCKS: Final = "num-gpu-blocks-override"


def page(engine: Engine) -> Figure:
    """Return the tokens that are given out at once."""
    flag = engine.flag("page-size" if engine.kind == "sglang" else "block-size")
    default = SGLANG_PAGE if engine.kind == "sglang" else VLLM_BLOCK
    count = None if flag is None else number(flag.value, engine.kind)
    if flag is None or count is None:
        return Figure(default, "the engine's default", engine.where)
    return Figure(count, _given(engine, flag), flag.where)


def concurrency(engine: Engine) -> Figure:
    """Return how many requests run at once at most."""
    flag = engine.flag(*_CONCURRENCY[engine.kind])
    count = None if flag is None else number(flag.value, engine.kind)
    if flag is None or count is None:
        return Figure(None, f"--{_CONCURRENCY[engine.kind][0]} is not given", engine.where)
    return Figure(count, _given(engine, flag), flag.where)


def input_limit(engine: Engine) -> Figure:
    """Return the shortest prompt that is rejected for its length, in tokens."""
    if engine.told.max_input_tokens is not None:
        return Figure(engine.told.max_input_tokens, "the engine says so", engine.where)
    window, held = context(engine), pool(engine)
    if engine.kind == "vllm":
        return window
    counts = [one.value for one in (window, held) if one.value is not None]
    if window.value is None or held.value is None:
        missing = window if window.value is None else held
        most = f", at most {min(counts) - INPUT_MARGIN:,}" if counts else ""
        return Figure(None, f"{missing.by}{most}", missing.where)
    least = min((window, held), key=lambda one: one.value or 0)
    by = f"min(context {window.value:,}, pool {held.value:,}) - {INPUT_MARGIN}"
    return Figure((least.value or 0) - INPUT_MARGIN, by, least.where)


def _given(engine: Engine, flag: Flag) -> str:
    name = next(name for name, one in engine.flags.items() if one is flag)
    return f"--{name} {flag.value}".rstrip()
