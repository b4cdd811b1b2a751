"""The metrics of a registry in the format that whoever scrapes asks for."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


def metrics_of(registry: CollectorRegistry) -> Callable[[str], tuple[bytes, str]]:
    """Return what gives the metrics for an Accept header, with their media type."""

    def metrics(accept: str) -> tuple[bytes, str]:
        try:
            encode, media_type = choose_encoder(accept)
        except (ValueError, TypeError):  # the library compares what it takes for a version
            encode, media_type = choose_encoder("")
        return encode(registry), media_type

    return metrics
