"""The corpus: configurations written for these tests, each with what every check must say of it.

The first lines of a file are comments: what it is about, the public manifest whose shape it has,
the options it is checked with, and which checks fail, warn, or cannot tell; all others pass.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from detector.check.gather import Given, gather
from detector.check.plan import run
from detector.check.verdict import Result, Verdict

FOLDER = Path(__file__).parent / "corpus"
MODELS = Path(__file__).parent / "models"
FIELDS = ("about", "shape", "options", "fail", "warn", "unknown")


@dataclass(frozen=True)
class Case:
    """One file of the corpus."""

    path: Path
    head: dict[str, str]

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return self.path.name

    @property
    def given(self) -> Given:
        """What a user would give to check it."""
        words = shlex.split(self.head["options"])
        options: dict[str, list[str]] = {}
        for name, value in zip(words[::2], words[1::2], strict=True):
            options.setdefault(name, []).append(value)
        known = {"--model-config", "--version", "--mean-tokens", "--vouch"}
        assert options.keys() <= known
        (mean,) = options.get("--mean-tokens", ["0"])
        (version,) = options.get("--version", [""])
        return Given(
            files=[str(self.path)],
            version=version or None,
            models=[str(MODELS / name) for name in options.get("--model-config", ())],
            vouched=options.get("--vouch", ()),
            mean_tokens=int(mean) or None,
        )

    def expected(self, verdict: Verdict) -> set[str]:
        """The checks that must say it; of failures with the line that is at fault."""
        return set(self.head[verdict.value].split())

    def results(self) -> list[Result]:
        """What the checks say."""
        return list(run(gather(self.given)))


def cases() -> list[Case]:
    """Return all files of the corpus, by name."""
    return [Case(path, _head(path)) for path in sorted(FOLDER.iterdir())]


def said(results: list[Result], verdict: Verdict) -> set[str]:
    """The checks that say something, in the form of `Case.expected`."""
    found = [one for one in results if one.said.verdict is verdict]
    if verdict is Verdict.FAIL:
        return {f"{one.check}:{one.said.where.rpartition(':')[2]}" for one in found}
    return {one.check for one in found}


def _head(path: Path) -> dict[str, str]:
    head = dict.fromkeys(FIELDS, "")
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        name, _, value = line[2:].partition(":")
        if name in FIELDS:
            head[name] = value.strip()
    return head
