"""The description of the API, as it is committed; `make api-description` writes it anew."""

from pathlib import Path
from tempfile import TemporaryDirectory

from exporters.http.access import Access
from exporters.http.app import application
from exporters.http.openapi import text
from exporters.http.parts import Parts
from exporters.http.settings import ApiSettings
from tests.content.tree import ROOT
from tests.http.kit import NOW_MS, served

COMMITTED = ROOT / "docs" / "openapi-api.json"


def description(parts: Parts) -> str:
    """Return what the code says of itself."""
    access = Access(ApiSettings(), clock=lambda: 0.0, now_ms=lambda: NOW_MS)
    return text(application(parts, access))


if __name__ == "__main__":
    with TemporaryDirectory() as folder, served(Path(folder), api={}) as api:
        COMMITTED.write_text(description(api.parts), encoding="utf-8")
