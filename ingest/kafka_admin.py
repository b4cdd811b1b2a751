"""Asks a Kafka cluster what its topics are like, and makes those that are missing."""

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from detector.errors import BrokerError
from ingest.kafka_errors import broker_error, connecting
from ingest.kafka_settings import KafkaSettings
from ingest.topics import TopicSpec

_Answer = TypeVar("_Answer")

_EXISTS: Final = 36
"""Kafka's error code for a topic that is there already."""


class TopicState(NamedTuple):
    """One topic as it is."""

    name: str
    partitions: int
    replicas: int
    """Of the partition that has the fewest."""

    configs: Mapping[str, str]
    """In Kafka's names, the cluster's defaults included."""

    @property
    def retention_ms(self) -> int | None:
        """How long records are kept at least; None without an end."""
        kept_ms = int(self.configs.get("retention.ms", -1))
        return None if kept_ms < 0 else kept_ms


class ClusterState(NamedTuple):
    """The cluster as it is."""

    brokers: int
    auto_create: bool
    """Whether the cluster makes a topic when somebody asks for one that is not there."""


class KafkaAdmin:
    """Administration of one cluster. Every method raises BrokerError when it is not answered."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._where = ", ".join(settings.servers)
        with connecting(settings) as options:
            self._client = KafkaAdminClient(
                **options, request_timeout_ms=settings.connect_timeout_ms
            )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def create(self, specs: Iterable[TopicSpec]) -> set[str]:
        """Make the topics that are missing and return their names; others are left as they are.

        That takes the right to create topics only where one is missing. Raises BrokerError with the
        cluster's reason if one cannot be made.
        """
        specs = list(specs)
        there = self._described(spec.name for spec in specs)
        wanted = {
            spec.name: {
                "num_partitions": spec.partitions,
                "replication_factor": -1 if spec.replicas is None else spec.replicas,
                "configs": dict(spec.configs),
            }
            for spec in specs
            if spec.name not in there
        }
        if not wanted:
            return set()
        answer = self._ask(lambda: self._client.create_topics(wanted, raise_errors=False))
        for topic in answer["topics"]:
            if topic["error_code"] not in (0, _EXISTS):
                raise BrokerError(
                    f"the cluster does not make it: {topic['error_message']}",
                    where=f"topic {topic['name']}",
                    hint="set kafka.replication_factor or partitions as the cluster can, or give "
                    "the user the right to create topics",
                )
        self._ask(lambda: self._client.wait_for_topics(set(wanted)))  # somebody else's as well
        return {topic["name"] for topic in answer["topics"] if not topic["error_code"]}

    def topics(self, names: Iterable[str]) -> dict[str, TopicState]:
        """Return what each of these topics is like, in their order, without those that miss."""
        wanted = list(names)
        there = self._described(wanted)
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in there]
        configs = self._configs(resources).get("topic", {})
        return {
            name: TopicState(
                name=name,
                partitions=len(partitions),
                replicas=min(len(partition["replica_nodes"]) for partition in partitions),
                configs=configs[name],
            )
            for name in wanted
            if (partitions := there.get(name))
        }

    def _described(self, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the partitions of those of the topics that are there."""
        wanted = list(names)
        found = self._ask(lambda: self._client.describe_topics(wanted))
        return {topic["name"]: topic["partitions"] for topic in found if not topic["error_code"]}

    def cluster(self) -> ClusterState:
        """Return what matters of the cluster."""
        brokers = self._ask(self._client.describe_cluster)["brokers"]
        name = str(brokers[0]["broker_id"])
        configs = self._configs([ConfigResource(ConfigResourceType.BROKER, name)])
        auto_create = configs["broker"][name].get("auto.create.topics.enable")
        return ClusterState(brokers=len(brokers), auto_create=auto_create == "true")

    def _configs(self, resources: list[ConfigResource]) -> dict[str, dict[str, dict[str, str]]]:
        if not resources:
            return {}
        found = self._ask(lambda: self._client.describe_configs(resources, config_filter="all"))
        return {
            kind: {
                name: {key: str(config["value"]) for key, config in configs.items()}
                for name, configs in by_name.items()
            }
            for kind, by_name in found.items()
        }

    def _ask(self, question: Callable[[], _Answer]) -> _Answer:
        try:
            return question()
        except KafkaError as error:
            raise broker_error(error, where=self._where) from None
