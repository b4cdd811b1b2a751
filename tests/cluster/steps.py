"""Steps of a run: each is told with the seconds it took, and at the end all are a table."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Step:
    """One step. `seen` is what it found; empty, and `failure` is not, if something is missing."""

    name: str
    seconds: float = 0.0
    seen: str = ""
    failure: str = ""


class Steps:
    """Runs steps one after the other; none follows one that failed."""

    def __init__(self) -> None:
        self.done: list[Step] = []
        self._began = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time a block, and say what it saw or why it failed; failures go on as they are."""
        one = Step(name)
        began = time.monotonic()
        try:
            yield one
        except Exception as error:
            one.failure = str(error) or type(error).__name__
            raise
        finally:
            one.seconds = time.monotonic() - began
            self.done.append(one)
            print(f"{one.seconds:6.1f} s  {one.name}: {one.failure or one.seen}", flush=True)

    @property
    def seconds(self) -> float:
        """All that has passed since the first step could begin."""
        return time.monotonic() - self._began

    def table(self) -> str:
        """Return all steps as a Markdown table."""
        rows = [(one.name, f"{one.seconds:.1f}", one.failure or one.seen) for one in self.done]
        rows = [("step", "seconds", "seen"), ("---", "---", "---"), *rows]
        rows.append(("all", f"{self.seconds:.1f}", ""))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
