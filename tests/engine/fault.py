"""How a test tells an engine which fault to have: names of variables, read in both environments."""

from typing import Final

KEEP_EVERY: Final = "BLEEDWATCH_TEST_KEEP_EVERY"
"""Every so many-th request that finishes keeps its KV blocks."""

KEPT: Final = "BLEEDWATCH_TEST_KEPT"
"""The file that gets a line of JSON for each such request, with the numbers of its blocks."""
