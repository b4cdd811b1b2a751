"""Every check of a probe, in the order in which they are run, and the public faults behind them."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from detector.check.verdict import Result, Said, Verdict
from detector.errors import BudgetError
from detector.probe import lengths, planting, prefixes, release
from detector.probe.bench import Bench

Probe = Callable[[Bench], Iterable[Said]]


class Check(NamedTuple):
    """One check. `stands_for` names what went wrong in public."""

    name: str
    probe: Probe
    stands_for: str

    @property
    def about(self) -> str:
        """What is so if it passes."""
        return (self.probe.__doc__ or "").splitlines()[0]


CHECKS: Final = (
    Check(
        "usage",
        lengths.usage,
        "sgl-project/sglang#30233, where 1 of 284,937 prompt tokens was read and answered",
    ),
    Check(
        "varied-answers",
        lengths.varied,
        "vllm-project/vllm#55291 and sgl-project/sglang#23020, where damaged memory made loops",
    ),
    Check(
        "salts",
        prefixes.salts,
        "sgl-project/sglang#37160, where a lower tier of the cache dropped the salt, and "
        "vllm-project/aibrix#2329, where keys of blocks collided",
    ),
    Check(
        "boundary",
        lengths.boundary,
        "sgl-project/sglang#30233, #35421 and #38704, where prompts longer than a pool of "
        "681,280 tokens were rejected and answered all the same",
    ),
    Check(
        "release-after-refusal",
        release.after_refusal,
        "vllm-project/vllm#41269, where blocks of refused requests were stranded",
    ),
    Check(
        "release-after-abort",
        release.after_abort,
        "sgl-project/sglang#8177 and vllm-project/vllm#46283, where aborts filled the pool",
    ),
    Check(
        "release-after-time-out",
        release.after_time_out,
        "sgl-project/sglang#32564, where a time-out left memory that others were given",
    ),
    Check(
        "canary-over-limit",
        planting.over_limit,
        "sgl-project/sglang#38704, where such a prompt was answered out of earlier tenants' memory",
    ),
    Check(
        "canary-short",
        planting.short,
        "GHSA-v97p-wpxp-px84 of vLLM, where a recycled slot held the request before",
    ),
    Check(
        "canary-concurrent",
        planting.concurrent,
        "sgl-project/sglang#24226, where memory was freed while its request decoded, and "
        "vllm-project/vllm#13408, where concurrent answers changed places",
    ),
)

NAMES: Final = tuple(check.name for check in CHECKS)


def run(bench: Bench, *, skipped: Collection[str] = ()) -> Iterator[Result]:
    """Run the checks; what the budget does not allow is unknown, and so not passed."""
    for check in CHECKS:
        if check.name in skipped:
            continue
        try:
            for said in check.probe(bench):
                yield _result(check, said)
        except BudgetError as error:
            said = Said(Verdict.UNKNOWN, error.what, bench.where, "", error.hint)
            yield _result(check, said)


def is_passed(results: Iterable[Result]) -> bool:
    """Tell whether everything was shown: what is unknown is not."""
    return all(one.said.verdict in (Verdict.PASS, Verdict.WARN) for one in results)


def _result(check: Check, said: Said) -> Result:
    return Result(check.name, said.where, said._replace(why=f"stands for {check.stands_for}"))
