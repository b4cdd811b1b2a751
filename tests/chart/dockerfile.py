"""The Dockerfile taken apart: its stages, with what they run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@dataclass(slots=True)
class Stage:
    """One stage: what it is made from, and its instructions but FROM, in order."""

    parent: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        """Return the arguments of one kind of instruction."""
        return [rest for name, rest in self.instructions if name == word]

    def variables(self) -> dict[str, str]:
        """Return what ENV sets."""
        pairs = (pair.partition("=") for line in self.all("ENV") for pair in line.split())
        return {name: value for name, _, value in pairs}


def stages() -> dict[str, Stage]:
    """Return the stages by name; `base` is what ARG names."""
    found: dict[str, Stage] = {}
    current = found["base"] = Stage(parent="")
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if not line or word == "#":
            continue
        if word == "FROM":
            parent, _, name = rest.partition(" AS ")
            current = found[name] = Stage(parent)
        else:
            current.instructions.append((word, rest))
    return found


def context() -> list[Path]:
    """Return what .dockerignore leaves to a build: it names everything, then exceptions."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [ROOT / line[1:] for line in lines if line.startswith("!")]
