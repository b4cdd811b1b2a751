"""What holds text, ids or hashes on its way shows none of it in a repr: tracebacks print them."""

import pytest

from ingest.broker import BrokerRecord, Message
from ingest.signals.lines import LogMessage
from ingest.sources.sglang_lines import AnswerFields, RequestFields
from ingest.sources.vllm_lines import LogLine

CANARY = "canary"

HOLDERS = [
    BrokerRecord("t", 0, 7, CANARY.encode(), CANARY.encode(), (("h", CANARY.encode()),), 1),
    Message("t", CANARY.encode(), CANARY.encode(), (("h", CANARY.encode()),)),
    LogMessage(CANARY.encode(), "place", CANARY),
    RequestFields(rid="r", text=CANARY, input_ids=[424_242], user=CANARY),
    AnswerFields(text=CANARY, output_ids=[424_242]),
    LogLine(start_ms=1, end_ms=2, place="place", message=CANARY, head=CANARY.encode()),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda each: type(each).__name__)
def test_a_repr_names_what_it_is_and_shows_none_of_it(holder: object) -> None:
    shown = repr(holder)
    assert type(holder).__name__ in shown
    assert CANARY not in shown
    assert "424242" not in shown
