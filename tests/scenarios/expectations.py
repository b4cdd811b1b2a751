"""What must and what may come of each public fault, read from the folder `expected`.

The rows were written from the reports, without the simulator: A is content that went astray, B
memory that was not released. BW001 to BW003 count at high confidence. BW402 is about the version of
the simulated engine; BW901 is about the monitor, and left out.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import yaml

from detector.finding import Confidence, Finding

ABOUT_THE_MONITOR: Final = frozenset({"BW901"})
CONTENT: Final = frozenset({"BW001", "BW002", "BW003"})

FILES: Final = ("content_sglang", "content_vllm", "content_others", "memory")


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One public report. What is neither in `fires` nor in `may` must not fire.

    `visible` is what an operator could see; `scenario` names the simulated fault of the same class.
    Engines that are not simulated are stood in for by SGLang or vLLM.
    """

    bug: str
    report: str
    scenario: str
    visible: str
    fires: tuple[str, ...]
    may: tuple[str, ...]

    def differences(self, seen: Iterable[str]) -> list[str]:
        """Say how what was seen is not what must be."""
        fired = set(seen)
        missing = [f"{rule} did not fire" for rule in sorted({*self.fires} - fired)]
        extra = sorted(fired - {*self.fires, *self.may})
        return missing + [f"{rule} fired" for rule in extra]


def rows() -> list[Row]:
    """Return all rows, file by file, in the order in which they stand there."""
    folder = Path(__file__).with_name("expected")
    texts = [(folder / f"{name}.yaml").read_text(encoding="utf-8") for name in FILES]
    return [row for text in texts for row in msgspec.convert(yaml.safe_load(text), list[Row])]


def fired(findings: Iterable[Finding]) -> set[str]:
    """Return the rules that count: those about content at high confidence only."""
    return {
        one.rule
        for one in findings
        if one.rule not in ABOUT_THE_MONITOR
        and (one.rule not in CONTENT or one.confidence is Confidence.HIGH)
    }
