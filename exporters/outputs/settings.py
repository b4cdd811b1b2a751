"""Settings of outputs: where alerts go, which of them, and with which secrets."""

from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from detector.finding import Confidence, Severity
from detector.settings import Positive, Section
from exporters.outputs.addresses import is_public

NAME: Final = r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"
"""Names of outputs are labels of metrics and words of the command line: as names in DNS."""

SECRET: Final = "<secret>"  # noqa: S105 - what is shown instead of one
"""Shown in place of what is one."""

_Words = tuple[Annotated[str, Field(min_length=1, max_length=256)], ...]


class Matchers(Section):
    """Which incidents an output is told of: all that every given line matches.

    A name may hold `*` for any characters and `?` for one.
    """

    severity: Severity = Field(Severity.INFO, description="Lowest severity.")
    confidence: Confidence = Field(Confidence.LOW, description="Lowest confidence.")
    rules: _Words = Field((), description="Rules of which one must be in the incident.")
    tenants: _Words = Field((), description="Tenants of which one must be in the incident.")
    kv_pools: _Words = Field((), description="KV pools of which one is the incident's.")


class OutputSettings(Section):
    """What every output has."""

    name: Annotated[str, Field(pattern=NAME)] = Field(
        description="Its name: unique, lower case letters, digits and dashes."
    )
    heartbeats: bool = Field(
        False,
        description="Send heartbeats that have arrived, once a minute at most, and nothing else: "
        "for a receiver that alerts when they stop.",
    )
    when: Matchers = Field(Matchers(), description="Which incidents it is told of.")
    dry_run: bool = Field(False, description="Say in the log what would be sent, and send nothing.")
    most_per_minute: Positive = Field(60, description="More than this waits; nothing is left out.")


class HttpOutputSettings(OutputSettings):
    """What every output over HTTP has."""

    url: str | None = Field(None, description="Where to send to.")
    url_file: str | None = Field(
        None, description="File with the URL on its first line, where the URL is a secret."
    )
    token_file: str | None = Field(
        None, description="File with a bearer token on its first line; unset: none is sent."
    )
    ca_file: str | None = Field(
        None, description="PEM file of the authorities to trust; unset: those of the system."
    )
    allow_private: bool = Field(
        False, description="Call addresses that are not public, and without TLS."
    )
    timeout_ms: Annotated[int, Field(ge=100, le=15_000)] = Field(
        10_000, description="How long one sending may take as a whole."
    )

    @field_validator("url")
    @classmethod
    def _is_plain(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
            if urlsplit(value).username is not None or urlsplit(value).query:
                raise ValueError("must hold no password and no query: write it to a url_file")
        return value

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("needs either url or url_file")
        if self.url is not None and not self.allow_private:
            parts = urlsplit(self.url)
            host = parts.hostname or ""
            literal = ":" in host or host.replace(".", "").isdigit()
            if parts.scheme == "http" or host == "localhost" or (literal and not is_public(host)):
                raise ValueError("is not public or not https: set allow_private if it is meant so")
        return self

    @property
    def target(self) -> str:
        """Where it sends to, without the path, which some receivers make a secret of."""
        if self.url is None:
            return SECRET
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


def check_url(value: str) -> None:
    """Raise ValueError, which does not repeat the value, unless it is a URL of a web server."""
    try:
        parts = urlsplit(value)
        complete = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        complete = False
    if not complete or not value.isascii() or not value.isprintable():
        raise ValueError("must begin with http:// or https:// and name a host")


class AlertmanagerSettings(HttpOutputSettings):
    """Alertmanager's API: alerts that are sent again while an incident is open."""

    kind: Literal["alertmanager"]
    resend_ms: Annotated[int, Field(ge=1_000)] = Field(
        60_000,
        description="How often an open incident is sent again: Alertmanager ends what it is not "
        "told again within four times this.",
    )


class WebhookSettings(HttpOutputSettings):
    """Any receiver of webhooks."""

    kind: Literal["webhook"]
    format: Literal["native", "alertmanager"] = Field(
        "native", description="The body: ours, or that of Alertmanager's webhooks (version 4)."
    )
    secrets_file: str | None = Field(
        None,
        description="File of secrets `whsec_...`, one on each line: every one signs, so that they "
        "can be replaced. Unset: nothing is signed.",
    )


class KafkaOutputSettings(OutputSettings):
    """A topic of the cluster in `kafka`."""

    kind: Literal["kafka"]
    topic: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")] = Field(
        "bleedwatch.alerts", description="The topic, with its prefix; it must exist."
    )
    timeout_ms: Annotated[int, Field(ge=100, le=15_000)] = Field(
        10_000, description="How long one sending may take as a whole."
    )

    @property
    def target(self) -> str:
        """Where it sends to."""
        return f"topic {self.topic}"


class StdoutSettings(OutputSettings):
    """JSON lines."""

    kind: Literal["stdout"]
    path: str | None = Field(None, description="A file to append to; unset: standard output.")

    @property
    def target(self) -> str:
        """Where it writes to."""
        return self.path or "standard output"


class AppriseSettings(OutputSettings):
    """Everything that Apprise can reach: chats, pagers, mail."""

    kind: Literal["apprise"]
    urls_file: str = Field(description="File of Apprise URLs, one on each line.")

    @property
    def target(self) -> str:
        """URLs of Apprise are secrets as a whole."""
        return SECRET


AnyOutput = Annotated[
    AlertmanagerSettings | WebhookSettings | KafkaOutputSettings | StdoutSettings | AppriseSettings,
    Field(discriminator="kind"),
]


def _have_names_of_their_own(outputs: tuple[AnyOutput, ...]) -> tuple[AnyOutput, ...]:
    names = [output.name for output in outputs]
    if len(set(names)) < len(names):
        raise ValueError("must have names of their own: two of them share one")
    return outputs


Outputs = Annotated[tuple[AnyOutput, ...], AfterValidator(_have_names_of_their_own)]


class SendingSettings(Section):
    """How alerts are sent, whatever the output."""

    external_url: str | None = Field(
        None, description="Where people reach the triage page, for links; unset: no links."
    )
    give_up_ms: Annotated[int, Field(ge=60_000)] = Field(
        3 * 86_400_000,
        description="How long an output may be away before an alert for it is given up.",
    )

    @field_validator("external_url")
    @classmethod
    def _is_a_url(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value
