"""Settings of the log signals: which patterns a sidecar looks for beyond its own."""

from pydantic import Field

from detector.settings import Section


class SignalSettings(Section):
    """Log lines of an engine that are events."""

    files: tuple[str, ...] = Field(
        (),
        description="Further pattern files, tried before those that come with the program.",
    )
    off: tuple[str, ...] = Field((), description="Names of patterns that are not looked for.")
