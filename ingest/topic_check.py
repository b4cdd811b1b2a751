"""Compares topics as they are with topics as they must be, and explains every difference."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from detector.settings import DetectionSettings
from ingest.kafka_admin import ClusterState, TopicState
from ingest.kafka_settings import KafkaSettings
from ingest.topics import TopicSpec, topic_names, topic_specs

USUAL_REPLICAS: Final = 3
"""What a topic should have where nothing is set and the cluster is large enough."""

_UNLIMITED: Final = "-1"

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


class Mismatch(NamedTuple):
    """One difference. An error breaks a promise of ours, a warning costs something."""

    topic: str
    level: Literal["error", "warning"]
    problem: str
    next_step: str


def check_topics(
    settings: KafkaSettings,
    detection: DetectionSettings,
    topics: Mapping[str, TopicState],
    cluster: ClusterState,
) -> list[Mismatch]:
    """Return every mismatch, errors first, then in the order of the topics."""
    specs = topic_specs(settings)
    found = [*_settings(settings, detection), *_cluster(cluster, settings)]
    for spec in specs:
        state = topics.get(spec.name)
        if state is None:
            found.append(_missing(spec, cluster))
            continue
        needed_ms = _needed_ms(spec.name, settings, detection)
        found += _partitions(spec, state, settings, topics)
        found += _retention(spec, state, needed_ms)
        found += _form(spec, state)
        found += _replicas(spec, state, cluster)
    return sorted(found, key=lambda mismatch: mismatch.level)


def duration(milliseconds: int | None) -> str:
    """Return milliseconds as people say them: 36 h, 7 d, 90 s; "for ever" for None."""
    if milliseconds is None:
        return "for ever"
    size, unit = next(
        ((size, unit) for size, unit in _UNITS if milliseconds % size == 0), _UNITS[-1]
    )
    return f"{milliseconds // size:,} {unit}"


def _settings(settings: KafkaSettings, detection: DetectionSettings) -> Iterator[Mismatch]:
    for spec in topic_specs(settings):
        needed_ms = _needed_ms(spec.name, settings, detection)
        if spec.retention_ms < needed_ms:
            yield Mismatch(
                spec.name,
                "error",
                f"the settings keep it for {duration(spec.retention_ms)} and the detection needs "
                f"{duration(needed_ms)}",
                "raise kafka.retention, or lower the window or the horizon of detection",
            )


def _cluster(cluster: ClusterState, settings: KafkaSettings) -> Iterator[Mismatch]:
    if cluster.auto_create:
        yield Mismatch(
            f"{settings.topic_prefix}.*",
            "warning",
            "the cluster makes a topic for whoever asks for one, with its own number of partitions",
            "set auto.create.topics.enable=false on the brokers",
        )


def _missing(spec: TopicSpec, cluster: ClusterState) -> Mismatch:
    danger = ", and the cluster may make it wrong" if cluster.auto_create else ""
    return Mismatch(
        spec.name, "error", f"there is no such topic{danger}", "bleedwatch topics create"
    )


def _partitions(
    spec: TopicSpec,
    state: TopicState,
    settings: KafkaSettings,
    topics: Mapping[str, TopicState],
) -> Iterator[Mismatch]:
    alike = topic_names(settings.topic_prefix).alike
    first = topics.get(alike[0])
    if spec.name in alike and first is not None and state.partitions != first.partitions:
        more = max(state.partitions, first.partitions)
        smaller = state.name if state.partitions < more else first.name
        yield Mismatch(
            spec.name,
            "error",
            f"it has {state.partitions} partitions and {first.name} has {first.partitions}: what "
            "belongs together comes to different workers",
            f"stop senders and workers, then kafka-topics --alter --topic {smaller} "
            f"--partitions {more}",
        )
    elif state.partitions != spec.partitions and spec.name in alike[:1]:
        yield Mismatch(
            spec.name,
            "warning",
            f"it has {state.partitions} partitions; kafka.partitions={spec.partitions} is what "
            "only new topics get",
            f"set kafka.partitions to {state.partitions}",
        )


def _retention(spec: TopicSpec, state: TopicState, needed_ms: int) -> Iterator[Mismatch]:
    kept_ms = state.retention_ms
    if kept_ms is not None and kept_ms < spec.retention_ms:
        why = (
            f"less than the {duration(needed_ms)} that the detection needs"
            if kept_ms < needed_ms
            else f"less than the {duration(spec.retention_ms)} of the settings"
        )
        yield _set(spec, "retention.ms", f"it keeps records {duration(kept_ms)}, {why}")
    elif kept_ms != spec.retention_ms:
        problem = f"it keeps records {duration(kept_ms)}, the settings say "
        yield _set(spec, "retention.ms", f"{problem}{duration(spec.retention_ms)}", level="warning")
    if state.configs.get("retention.bytes", _UNLIMITED) != _UNLIMITED:
        yield _set(
            spec,
            "retention.bytes",
            f"retention.bytes={state.configs['retention.bytes']} may delete records early",
            value=_UNLIMITED,
            level="warning",
        )


def _form(spec: TopicSpec, state: TopicState) -> Iterator[Mismatch]:
    wanted, actual = (
        set(text.split(",")) for text in (spec.cleanup, _config(state, "cleanup.policy"))
    )
    if "compact" in actual - wanted:
        yield _set(spec, "cleanup.policy", "it is compacted: of each KV pool only the newest stays")
    elif "compact" in wanted - actual:
        yield _set(spec, "cleanup.policy", "it is not compacted: what still holds is deleted")
    elif actual != wanted:
        problem = "nothing is ever deleted from it: it grows without end"
        yield _set(spec, "cleanup.policy", problem, level="warning")
    if _config(state, "message.timestamp.type") != "CreateTime":
        problem = "the broker replaces the time of sending, by which a window is rebuilt"
        yield _set(spec, "message.timestamp.type", problem)
    most = int(_config(state, "max.message.bytes") or 0)
    if most < spec.max_message_bytes:
        problem = f"it refuses records of more than {most:,} bytes, we send up to "
        yield _set(spec, "max.message.bytes", f"{problem}{spec.max_message_bytes:,}")


def _replicas(spec: TopicSpec, state: TopicState, cluster: ClusterState) -> Iterator[Mismatch]:
    wish = spec.replicas or min(USUAL_REPLICAS, cluster.brokers)
    if state.replicas < wish:
        yield Mismatch(
            spec.name,
            "error" if spec.replicas else "warning",
            f"{state.replicas} of {wish} replicas: a broker that is lost takes its records along",
            "reassign its partitions with kafka-reassign-partitions, or set "
            f"kafka.replication_factor to {state.replicas}",
        )
    in_sync = int(_config(state, "min.insync.replicas") or 1)
    if in_sync > state.replicas:
        problem = (
            f"it wants {in_sync} replicas in sync and has {state.replicas}: nothing is accepted"
        )
        yield _set(spec, "min.insync.replicas", problem, value=str(state.replicas))


def _needed_ms(name: str, settings: KafkaSettings, detection: DetectionSettings) -> int:
    """Return how long the detection needs the records of a topic, whatever the settings say."""
    names = topic_names(settings.topic_prefix)
    if name in (*names.inputs, names.bands):
        return detection.window.keep_ms
    if name in (names.shingles, names.commonness):
        return detection.commonness.horizon_ms
    return 0


def _config(state: TopicState, key: str) -> str:
    return state.configs.get(key, "")


def _set(
    spec: TopicSpec,
    key: str,
    problem: str,
    *,
    value: str | None = None,
    level: Literal["error", "warning"] = "error",
) -> Mismatch:
    setting = f"{key}={spec.configs[key] if value is None else value}"
    if "," in setting:
        setting = setting.replace("=", "=[") + "]"  # how kafka-configs takes a list
    return Mismatch(
        spec.name,
        level,
        problem,
        f"kafka-configs --alter --entity-type topics --entity-name {spec.name} "
        f"--add-config {setting}",
    )
