"""Settings of the store: where it is, and how long it keeps what."""

from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from detector.settings import Section

DAY_MS: Final = 86_400_000

SCHEMES: Final = ("sqlite", "postgresql")

Span = Annotated[int, Field(ge=1000)]


class StoreRetentionSettings(Section):
    """How long the store keeps what; a hold on an incident keeps both."""

    requests_ms: Span = Field(
        30 * DAY_MS, description="Rows of requests: how far a blast radius can look back."
    )
    incidents_ms: Span = Field(
        365 * DAY_MS,
        description="Resolved incidents after their last news, with all about them.",
    )


class StoreSettings(Section):
    """The database of findings, incidents and rows of requests."""

    url: str = Field(
        "sqlite:///bleedwatch.db",
        description="`sqlite:///FILE`, with a fourth slash for an absolute path, or "
        "`postgresql://USER@HOST:PORT/DATABASE`.",
    )
    password_file: str | None = Field(
        None,
        description="File with PostgreSQL's password on its first line, unreadable for others.",
    )
    retention: StoreRetentionSettings = StoreRetentionSettings()

    @field_validator("url")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        """Refuse a URL that nobody can open, and one that would show a password wherever it goes.

        The value is not repeated: it may hold one.
        """
        try:
            parts = urlsplit(value)
            password = parts.password
        except ValueError:
            raise ValueError("must be a URL, such as sqlite:///bleedwatch.db") from None
        if parts.scheme not in SCHEMES:
            raise ValueError("must begin with sqlite:// or postgresql://")
        if password is not None or "password" in parts.query:
            raise ValueError("must not hold a password: write it to a file for password_file")
        if parts.scheme == "sqlite" and (parts.netloc or len(parts.path) <= 1):
            raise ValueError("needs three slashes and a path: sqlite:///bleedwatch.db")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.password_file is not None and not self.url.startswith("postgresql:"):
            raise ValueError("password_file goes with a postgresql:// url only")
        return self
