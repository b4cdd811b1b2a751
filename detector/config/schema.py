"""JSON Schema of the configuration file, for editors and for charts that carry one."""

from typing import Any

from detector.config.load import UNITS
from detector.config.root import Settings


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12); durations and sizes may be numbers or text with a unit."""
    document = Settings.model_json_schema()
    _allow_units(document)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def _allow_units(node: object) -> None:
    if isinstance(node, list):
        for item in node:
            _allow_units(item)
    if not isinstance(node, dict):
        return
    for name, inner in node.get("properties", {}).items():
        if name.endswith(tuple(UNITS)) and inner.get("type") == "integer":
            inner["type"] = ["integer", "string"]
    for inner in node.values():
        _allow_units(inner)
