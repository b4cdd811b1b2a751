"""The truth about planted bleeds, row by row, with the fields of the evaluation sets."""

import enum

import msgspec

from detector.model import EngineId, Kind, RequestId, Role, TenantId


class BleedKind(enum.StrEnum):
    """How foreign tokens got into an answer."""

    MID_INSERT = "mid_insert"
    MID_OVERWRITE = "mid_overwrite"
    START = "start"
    NOISY_MID = "noisy_mid"
    FULL_RESPONSE = "full_response"
    FULL_PROMPT = "full_prompt"
    REPEAT = "repeat_system_prompt"

    @property
    def is_whole(self) -> bool:
        """Whether the answer is nothing but foreign content."""
        return self in {BleedKind.FULL_RESPONSE, BleedKind.FULL_PROMPT}


FULL = "full"
"""The length given for a bleed that is a whole prompt or response."""


class TruthRow(msgspec.Struct, frozen=True, kw_only=True):
    """One bleed. Positions are half-open token ranges; `dt_s` is victim minus source arrival.

    `source_start` and `source_end` count in the source's prompt_ids or response_ids as
    `source_field` says, `victim_start` and `victim_end` in the victim's response_ids.
    `source_role` is "response" or the role of the prompt's message. `noise_offsets` are places
    in the run, from its start, whose token was replaced by a random one.
    """

    leak_id: int
    victim_request_id: RequestId
    source_request_id: RequestId
    victim_tenant: TenantId
    source_tenant: TenantId
    node: EngineId
    dt_s: float
    length: int | str = msgspec.field(name="L")
    run_tokens: int
    kind: BleedKind
    source_field: Kind
    source_role: str
    source_start: int
    source_end: int
    victim_start: int
    victim_end: int
    noise_offsets: tuple[int, ...] = ()


RESPONSE_ROLE = "response"
PROMPT_ROLES = (Role.SYSTEM, Role.USER)
"""Messages of a prompt that a bleed is taken from; an answer re-sent in it is no new content."""
