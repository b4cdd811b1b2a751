"""Where an incident must be seen: Alertmanager, the receiver, the triage page, Prometheus."""

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from standardwebhooks import Webhook

from tests.cluster.boards import Panel
from tests.cluster.cluster import Cluster
from tests.cluster.site import SECRET
from tests.services.prometheus import Prometheus

RESOLVED: Final = "resolved"

Found = str | None
"""What was seen, None if nothing was."""


def in_alertmanager(made: Cluster, rule: str, kv_pool: str) -> Found:
    """Look for an active alert of Alertmanager's API v2 that has the rule and the pool."""
    for alert in _json(f"{made.alertmanager.url}/api/v2/alerts?active=true"):
        told = alert["annotations"]
        if rule in told.get("rules", "") and told.get("kv_pools") == kv_pool:
            return f"{alert['labels']['alertname']}, severity {alert['labels']['severity']}"
    return None


def gone_from_alertmanager(made: Cluster, rule: str, kv_pool: str) -> Found:
    """Say so if no such alert is active."""
    return None if in_alertmanager(made, rule, kv_pool) else "no alert is active any more"


def in_receiver(made: Cluster, rule: str, kv_pool: str, *, kinds: tuple[str, ...]) -> Found:
    """Look for a webhook about it; every call must bear our signature, or this raises."""
    for call in made.hook.calls:
        event: dict[str, Any] = Webhook(SECRET).verify(call.body, dict(call.headers))
        told = event["data"]
        if event["type"] in kinds and rule in told["rules"] and kv_pool in told["kv_pools"]:
            return f"{event['type']}, signature verified"
    return None


def incident(made: Cluster, rule: str, kv_pool: str) -> dict[str, Any] | None:
    """Return the incident as the api tells it."""
    asked = urllib.parse.urlencode({"rule": rule, "kv_pool": kv_pool})
    found = _json(f"{made.site.triage}/v1/incidents?{asked}")["incidents"]
    return dict(found[0]) if found else None


def incidents_of(made: Cluster, kv_pool: str) -> list[dict[str, Any]]:
    """Return all incidents of a pool."""
    asked = urllib.parse.urlencode({"kv_pool": kv_pool})
    found: list[dict[str, Any]] = _json(f"{made.site.triage}/v1/incidents?{asked}")["incidents"]
    return found


def on_page(made: Cluster, rule: str, kv_pool: str) -> Found:
    """Look for the incident's page, and for its sentence there."""
    found = incident(made, rule, kv_pool)
    if found is None:
        return None
    with urllib.request.urlopen(page_of(made, found), timeout=10) as answer:
        page = answer.read().decode()
    return f"{found['state']}, led by {found['lead']['rule']}" if rule in page else None


def page_of(made: Cluster, found: dict[str, Any]) -> str:
    """Return the address of an incident's page."""
    return f"{made.site.triage}/incidents/{found['id']}"


def on_board(made: Cluster, panel: Panel, *, since_s: float) -> Found:
    """Look whether a panel has shown more than nothing since a moment (Unix)."""
    shown = panel.shown(made.prometheus, since_s=since_s, until_s=time.time())
    return f"shows {shown:,g}" if shown else None


def in_prometheus(made: Cluster, expression: str) -> Found:
    """Look whether an expression tells more than nothing."""
    values = [float(one["value"][1]) for one in made.prometheus.query(expression)]
    return f"{sum(values):g}" if sum(values) > 0 else None


def recovered(prometheus: Prometheus) -> Found:
    """Say so if Prometheus scrapes all it should and no output fails."""
    up = [one["value"][1] for one in prometheus.query("up")]
    failing = [one["value"][1] for one in prometheus.query("bleedwatch_output_failing")]
    if "0" in up or not failing or set(failing) != {"0"}:
        return None
    return f"{len(up)} targets are up, {len(failing)} outputs deliver"


def look(place: Callable[[], Found]) -> Found:
    """Look at a place; one that does not answer yet shows nothing."""
    try:
        return place()
    except OSError:
        return None


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())
