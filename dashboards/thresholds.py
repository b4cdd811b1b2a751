"""Every number at which a panel changes colour and an alert fires: one value for both.

Those that a detection rule has as well are read from its settings, so a board never says anything
else than a finding.
"""

from typing import Final

from detector.runtime.settings import RuntimeSettings

_RUNTIME: Final = RuntimeSettings()

POOL_USAGE: Final = _RUNTIME.pool_usage
"""Share of the KV pool in use above which memory changes hands: that of BW205."""

UNRELEASED_TOKENS: Final = _RUNTIME.unreleased_tokens
"""KV tokens held with nothing running: that of BW201."""

LAG_SECONDS: Final = 10
"""A finding is promised within seconds: later than this it is not."""

HEARTBEAT_SECONDS: Final = 600
"""Five heartbeats of two minutes: fewer are lost when a worker is replaced."""

BATCH_SECONDS: Final = 0.5
"""Half of the second within which a finding is promised."""

UNEXPLAINED_SHARE: Final = 0.001
"""Of the shingles of responses: 25 times what the recorded hour shows, 63 of 1,595,334."""

BLIND_SHARE: Final = 0.01
"""Of the sequences: one in a hundred that is not judged is worth a look, not a night's sleep."""
