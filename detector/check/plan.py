"""Every check of a configuration, in the order in which they are run."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from detector.check import capacity, isolation, transfer, visibility
from detector.check.engine import Engine
from detector.check.scope import Scope
from detector.check.verdict import Result, Said, Verdict

Probe = Callable[[Engine, Scope], Iterable[Said]]


class Check(NamedTuple):
    """One check. It says nothing of an engine that it is not about."""

    name: str
    probe: Probe

    @property
    def about(self) -> str:
        """What is so if it passes."""
        return (self.probe.__doc__ or "").splitlines()[0]


CHECKS: Final = (
    Check("pool-covers-context", capacity.covers_context),
    Check("pool-covers-load", capacity.covers_load),
    Check("page-size", capacity.pages),
    Check("input-limits", transfer.input_limits),
    Check("transfer-metadata", transfer.metadata),
    Check("kv-checksum", transfer.checksum),
    Check("deferred-release", transfer.deferred_release),
    Check("prefix-cache", isolation.prefix_cache),
    Check("prefix-hash", isolation.prefix_hash),
    Check("request-ids", isolation.request_ids),
    Check("endpoints", isolation.endpoints),
    Check("multimodal", visibility.multimodal),
    Check("request-log", visibility.request_log),
    Check("all-flags", visibility.all_flags),
)


def run(scope: Scope) -> Iterator[Result]:
    """Run every check over every engine, engine by engine."""
    for engine in scope.engines:
        for check in CHECKS:
            for said in check.probe(engine, scope):
                yield Result(check.name, engine.name, said)


def is_blocked(results: Iterable[Result]) -> bool:
    """Tell whether something must be mended before this is deployed."""
    return any(one.said.verdict is Verdict.FAIL for one in results)
