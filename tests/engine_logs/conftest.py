"""Collects the tests on genuine engine logs only where BLEEDWATCH_EVAL_DATA names the data."""

import os

collect_ignore_glob = [] if os.environ.get("BLEEDWATCH_EVAL_DATA") else ["test_*.py"]
