"""A wrong value is refused before anything is installed, and the message says where it is."""

from typing import Any

import pytest
from helm_python.errors import HelmValuesError

from tests.chart.rendering import render

WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"mode": "cluster"}, "/mode"),
    ({"replicas": 3}, "replicas"),
    ({"image": {"digest": "latest"}}, "/image/digest"),
    ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
    ({"image": {"repository": ""}}, "/image/repository"),
    ({"imagePullSecrets": ["registry"]}, "/imagePullSecrets/0"),
    ({"keySecret": {"name": "Not A Name"}}, "/keySecret/name"),
    ({"keySecret": {"value": "00ff"}}, "/keySecret"),
    ({"secrets": [{"name": "kafka"}]}, "/secrets/0"),
    ({"secrets": {"kafka": "kafka"}}, "/secrets"),
    ({"worker": {"replicas": -1}}, "/worker/replicas"),
    ({"worker": {"replicas": "two"}}, "/worker/replicas"),
    ({"worker": {"resources": {"memory": "1Gi"}}}, "/worker/resources"),
    ({"worker": {"resources": {"limits": {"memory": "much"}}}}, "/worker/resources/limits/memory"),
    ({"worker": {"autoscaling": {"minReplicas": 0}}}, "/worker/autoscaling/minReplicas"),
    ({"worker": {"podDisruptionBudget": {"most": 1}}}, "/worker/podDisruptionBudget"),
    ({"worker": {"nodeSelector": {"gpu": True}}}, "/worker/nodeSelector/gpu"),
    ({"worker": {"tolerations": ["NoSchedule"]}}, "/worker/tolerations/0"),
    ({"api": {"replicas": 2}}, "/config/store/url"),
    ({"api": {"persistence": {"size": "big"}}}, "/api/persistence/size"),
    ({"single": {"port": 70000}}, "/single/port"),
    ({"serviceAccount": {"create": "yes"}}, "/serviceAccount/create"),
    ({"networkPolicy": {"egressTo": ["kafka"]}}, "/networkPolicy/egressTo/0"),
    ({"monitoring": {"interval": 15}}, "/monitoring/interval"),
    ({"config": {"kafka": {"partitions": 0}}}, "/config/kafka/partitions"),
    ({"config": {"kafka": {"brokers": "kafka:9092"}}}, "/config/kafka"),
    ({"config": {"detection": {"window": {"length": 1}}}}, "/config/detection/window"),
    ({"config": {"metrics": {"port": "http"}}}, "/config/metrics/port"),
    ({"config": {"sidecar": {"format": "tgi"}}}, "/config/sidecar/format"),
    ({"config": {"outputs": [{"kind": "pigeon", "name": "a"}]}}, "/config/outputs/0"),
)


@pytest.mark.parametrize(("values", "place"), WRONG, ids=[place for _, place in WRONG])
def test_a_wrong_value_is_refused_with_its_path(values: dict[str, Any], place: str) -> None:
    with pytest.raises(HelmValuesError) as refused:
        render(values)
    assert place in str(refused.value)


def test_settings_may_be_written_with_units() -> None:
    assert render({"config": {"detection": {"window": {"length_ms": "10m"}}}})


def test_two_apis_may_share_postgresql() -> None:
    store = {"url": "postgresql://bleedwatch@postgres/bleedwatch"}
    assert render({"api": {"replicas": 2}, "config": {"store": store}})
