"""Every check there is, in the order in which they are run: what it looks at, and by what."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from detector.config.root import Settings
from detector.doctor import engines, host, kv_events, logs, patterns
from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level, Verdict

Probe = Callable[[Facts], Iterable[Verdict]]


class Check(NamedTuple):
    """One check. `is_for_all`: not only for a machine with a sidecar."""

    name: str
    about: str
    probe: Probe
    is_for_all: bool = False


class Line(NamedTuple):
    """One line of the report: a check and one of its verdicts."""

    check: str
    verdict: Verdict


CHECKS: Final = (
    Check("key file", "The secret is there, for its owner only.", host.key_file, is_for_all=True),
    Check("kafka", "The cluster answers, its topics are right.", host.topics, is_for_all=True),
    Check("receiver", "What takes records instead answers.", host.receiver, is_for_all=True),
    Check("request log", "Logs are there and tell of requests.", logs.requests),
    Check("token ids", "Prompts and answers have all their ids.", logs.token_ids),
    Check("tenants", "Every request has a tenant.", logs.tenants),
    Check("log clock", "No request is dated ahead of its log.", logs.clock),
    Check("log volume", "Logs lie in memory, not on a disk.", logs.volume),
    Check("log patterns", "Pattern files can be used.", patterns.patterns),
    Check("metrics", "Engines tell their metrics.", engines.metrics),
    Check("flags", "No flag hides what could be seen.", engines.flags),
    Check("engine clock", "Clocks of engines agree with ours.", engines.clock),
    Check("kv events", "Publishers of KV events answer.", kv_events.kv_events),
    Check("kv pool", "Engines that share memory are one pool.", engines.pools),
)


def diagnose(settings: Settings, *, has_sidecar: bool) -> Iterator[Line]:
    """Run the checks, one after the other; with `has_sidecar` all, else those for all machines."""
    facts = Facts(settings)
    for check in CHECKS:
        if has_sidecar or check.is_for_all:
            for verdict in check.probe(facts):
                yield Line(check.name, verdict)


def is_failed(lines: Iterable[Line]) -> bool:
    """Tell whether something must be mended."""
    return any(line.verdict.level is Level.ERROR for line in lines)
