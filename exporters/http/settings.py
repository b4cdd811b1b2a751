"""Settings of the HTTP API and its pages, and of the commands that ask it.

Apart from the server, so that reading the settings loads nothing else.
"""

import ipaddress
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from detector.addresses import is_loopback
from detector.settings import Section


class ApiSettings(Section):
    """Where the API and the triage page are served, and who may read and change what they show."""

    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1",
        description="Address to listen on; beyond loopback token files or a proxy are needed.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] | None = Field(
        8080, description="TCP port; 0 takes a free one, null: nothing is listened on."
    )
    read_tokens_file: str | None = Field(
        None,
        description="File of tokens that may read, one `NAME TOKEN` on each line, unreadable for "
        "others.",
    )
    write_tokens_file: str | None = Field(
        None, description="File of tokens that may read and change, of the same form."
    )
    proxy_user_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] | None = Field(
        None, description="Header in which a proxy that people sign in to names the user."
    )
    proxy_from: tuple[str, ...] = Field(
        (), description="Addresses or networks from which that header is believed."
    )
    proxy_writers: tuple[str, ...] = Field(
        (), description="Users of the proxy who may also change; names may hold `*` and `?`."
    )

    @field_validator("proxy_from")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            try:
                ipaddress.ip_network(one)
            except ValueError:
                raise ValueError(f"{one} is neither an address nor a network") from None
        return value

    @property
    def is_open(self) -> bool:
        """True if everybody who reaches the port may read: nothing says who is asking."""
        files = (self.read_tokens_file, self.write_tokens_file)
        return self.proxy_user_header is None and files == (None, None)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.proxy_user_header is None) != (not self.proxy_from):
            raise ValueError("proxy_user_header and proxy_from go together")
        if self.port is not None and self.is_open and not is_loopback(self.host):
            raise ValueError(
                "read_tokens_file, write_tokens_file or proxy_user_header must be set where host "
                "is not a loopback address"
            )
        return self


class ClientSettings(Section):
    """How commands reach an API."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] = Field(
        "http://127.0.0.1:8080", description="Where the API is."
    )
    token_file: str | None = Field(
        None,
        description="File with a token on its first line, unreadable for others; unset: none is "
        "sent.",
    )
