"""Which engine a command starts, and with which flags."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from detector.advisories.arguments import opposite
from detector.check.engine import Flag
from detector.check.shell import Word, is_variable

_MODULES: Final = {
    "sglang.launch_server": "sglang",
    "dynamo.sglang": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "dynamo.vllm": "vllm",
}
_INSIDE_MODULES: Final = tuple(f"{module}." for module in _MODULES)

_PROGRAMS: Final = {"vllm": "vllm", "sglang": "sglang"}
"""Programs that serve with the word `serve`."""

_OTHERS: Final = {
    "trtllm-serve": "TensorRT-LLM",
    "dynamo.trtllm": "TensorRT-LLM",
    "llama-server": "llama.cpp",
    "text-generation-launcher": "TGI",
    "lmdeploy": "LMDeploy",
    "tritonserver": "Triton",
}
"""Engines whose flags are not understood here; they are named, not passed over in silence."""

_IMAGES: Final = {"vllm-openai": "vllm", "sglang": "sglang", "vllm": "vllm"}
"""Images that are one engine: their entrypoint starts it, their tag is its version."""

_RUNNERS: Final = ("docker", "podman", "nerdctl")
"""Programs that start an image; what stands behind its name is for the engine."""

_FLAG: Final = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_SUBSTITUTIONS: Final = ("$(", "`")
_VARIABLES: Final = ("-e", "--env")
_FLAGS_INSIDE: Final = re.compile(r"ARG|FLAG|OPT|EXTRA|@", re.IGNORECASE)
_TAG: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:[._-]?(?:rc|post|dev|a|b)\d+)?)(?![\w.])")


class Launch(NamedTuple):
    """The start of an engine: its kind, the words behind it, where, and a named image."""

    kind: str
    words: tuple[Word, ...]
    where: str
    image: str = ""


def launch_of(words: Sequence[Word]) -> Launch | None:
    """Return the engine that a command starts, None if it starts none."""
    named = [number for number, word in enumerate(words) if image_kind(word.text)]
    is_run = bool(words) and PurePosixPath(words[0].text).name in _RUNNERS
    if not is_run or not named:
        return _started(words)
    image, behind = words[named[0]], words[named[0] + 1 :]
    started = _started(behind)
    if started is None and image_kind(image.text) == "vllm":
        started = served_by_image("vllm", behind, image.where)
    return None if started is None else started._replace(image=image.text)


def variables_of(
    words: Sequence[Word], environment: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """Return the variables that a command which starts an image hands on, as -e NAME=VALUE.

    A name alone has the value of the environment.
    """
    if not words or PurePosixPath(words[0].text).name not in _RUNNERS:
        return {}
    given = [
        word.text if before.text in _VARIABLES else word.text.removeprefix("--env=")
        for before, word in pairwise(words)
        if before.text in _VARIABLES or word.text.startswith("--env=")
    ]
    pairs = (text.partition("=") for text in given)
    return {name: value if mark else environment.get(name) for name, mark, value in pairs}


def _started(words: Sequence[Word]) -> Launch | None:
    for at, word in enumerate(words):
        name, last = PurePosixPath(word.text).name, words[at - 1].text if at else ""
        if name in _PROGRAMS and at + 1 < len(words) and words[at + 1].text == "serve":
            return Launch(_PROGRAMS[name], _named(words[at + 2 :]), word.where)
        if word.text in _MODULES and last == "-m":
            return Launch(_MODULES[word.text], tuple(words[at + 1 :]), word.where)
        if at and word.text.startswith(_INSIDE_MODULES):
            kind = next(_MODULES[one] for one in _MODULES if word.text.startswith(f"{one}."))
            return Launch(kind, tuple(words[at + 1 :]), word.where)
    return None


def other_engine(words: Sequence[Word]) -> str:
    """Return the name of an engine that is known and not understood, empty if there is none."""
    names = (PurePosixPath(word.text).name for word in words)
    return next((_OTHERS[name] for name in names if name in _OTHERS), "")


def image_kind(image: str) -> str:
    """Return the engine that an image starts by itself, empty if it is none."""
    return _IMAGES.get(PurePosixPath(image.partition("@")[0]).name.partition(":")[0], "")


def image_version(image: str) -> str:
    """Return the version that the tag of an engine's own image tells, empty if it tells none."""
    found = _TAG.match(image.partition("@")[0].rpartition(":")[2])
    return found[1] if image_kind(image) and found else ""


def served_by_image(kind: str, words: Sequence[Word], where: str) -> Launch:
    """Return the start of an engine by its image, which is given flags alone."""
    if words and words[0].text == "serve":
        words = words[1:]
    return Launch(kind, _named(words) if kind == "vllm" else tuple(words), where)


def flags_of(words: Sequence[Word]) -> Mapping[str, Flag]:
    """Return flags by name, underscores as dashes.

    The last of a repeated one counts, and of `--x` and `--no-x`.
    """
    found: dict[str, tuple[list[str], str]] = {}
    name = ""
    for word in words:
        flag = _FLAG.fullmatch(word.text)
        if flag is not None:
            name = flag[1].replace("_", "-")
            found.pop(opposite(name), None)
            found[name] = ([] if flag[2] is None else [flag[2]], word.where)
        elif name:
            found[name][0].append(word.text)
    return {name: Flag(tuple(values), where) for name, (values, where) in found.items()}


def unseen(words: Sequence[Word]) -> tuple[str, ...]:
    """Return what may hold more flags: variables that nothing here sets, and files of flags.

    A variable behind a flag is its value, unless its name speaks of flags.
    """
    pairs = zip(("", *(word.text for word in words)), words, strict=False)
    variables = [
        word.text
        for before, word in pairs
        if (is_variable(word.text) or word.text.startswith(_SUBSTITUTIONS))
        and (_FLAGS_INSIDE.search(word.text) or not _FLAG.fullmatch(before) or "=" in before)
    ]
    templates = [word.text for word in words if "{{" in word.text and "}}" in word.text]
    file = flags_of(words).get("config")
    files = [] if file is None else [f"--config {file.value}".strip()]
    return (*variables, *templates, *files)


def _named(words: Sequence[Word]) -> tuple[Word, ...]:
    """Give the model, which may stand without a flag, one."""
    if words and not words[0].text.startswith("-"):
        return (Word("--model", words[0].where), *words)
    return tuple(words)
