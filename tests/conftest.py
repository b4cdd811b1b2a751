"""Where recorded traffic lies, and what is not collected without it.

BLEEDWATCH_EVAL_DATA names a folder of recorded traffic. Without it the folders of RECORDED are left
out, and the header of the run says so; everything else runs on traffic made here.
"""

import os
from pathlib import Path

import pytest

VARIABLE = "BLEEDWATCH_EVAL_DATA"

RECORDED = {
    "eval_data": "detection on recorded traffic",
    "engine_logs": "readers on genuine engine logs",
}
"""Folders below tests/ that need recorded traffic, and what they try."""

_FOLDER = os.environ.get(VARIABLE)

collect_ignore = [] if _FOLDER else list(RECORDED)


def pytest_configure() -> None:
    if _FOLDER and not Path(_FOLDER).is_dir():
        raise pytest.UsageError(f"{VARIABLE} names no folder: {_FOLDER}")


def pytest_report_header() -> str:
    if _FOLDER:
        return f"recorded traffic: {_FOLDER}"
    left_out = "; ".join(f"tests/{name} ({what})" for name, what in RECORDED.items())
    return f"recorded traffic: none, {VARIABLE} is not set; not collected: {left_out}"


@pytest.fixture(scope="session")
def recorded_traffic() -> Path:
    """Return the folder of recorded traffic; only for tests in the folders of RECORDED."""
    assert _FOLDER, f"{VARIABLE} is not set"
    return Path(_FOLDER)
