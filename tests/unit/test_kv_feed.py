"""From KV events to records: isolation that is broken, sequences, and nothing that tells more."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from detector.model import Kind
from detector.sketch.token_table import Keys, Secret, TokenTable
from ingest.kv_events.feed import KvEventFeed, KvRecord
from ingest.kv_events.frames import Frame
from ingest.kv_events.settings import KvEventSettings, KvEventSource
from ingest.kv_events.tags import BlockTags
from ingest.schema import check, encode
from ingest.schema_records import EngineEvent, EventKind, SequenceRecord
from ingest.schema_sequence import from_record
from ingest.tenancy import FieldRule, Tenancy, TenancySettings
from tests.unit.kv_publisher import batch, stored

KEYS = Secret(bytes(range(32))).keys()
TABLE = TokenTable(KEYS.hash_key, key_id=KEYS.key_id)
TENANCY = Tenancy(
    TenancySettings(
        rules=(
            FieldRule(name="session_id", pattern="tenant:(?P<tenant>[a-z]+)"),
            FieldRule(name="cache_salt", pattern="salt-(?P<tenant>[a-z]+)"),
        )
    )
)
SOURCE = KvEventSource(endpoint="tcp://127.0.0.1:1", engine="e0", kv_pool="pool", model="m")


class Played:
    """Frames that are there already: a list for each time that somebody asks."""

    def __init__(self, *turns: Iterable[bytes | Frame]) -> None:
        self._turns = list(turns)
        self.counts: Counter[str] = Counter()

    def poll(self, now_s: float) -> list[Frame]:
        del now_s
        turn = self._turns.pop(0) if self._turns else ()
        return [one if isinstance(one, Frame) else Frame(one) for one in turn]


def feed(
    *turns: Iterable[bytes | Frame], keys: list[Keys] | None = None, **given: Any
) -> KvEventFeed:
    current = keys or [KEYS]
    tables = {one.key_id: TokenTable(one.hash_key, key_id=one.key_id) for one in current}
    return KvEventFeed(
        Played(*turns),
        SOURCE,
        KvEventSettings(**given),
        tenancy=TENANCY,
        table=lambda now_s: list(tables.values())[int(now_s >= 50) % len(tables)],
        tags=lambda: BlockTags(KEYS.tag_key),
    )


def events(records: Iterable[KvRecord]) -> list[EngineEvent]:
    return [one for one in records if isinstance(one, EngineEvent)]


def sides(records: Iterable[KvRecord]) -> list[tuple[str, Kind, list[int]]]:
    """Return tenant, kind and token ids, which the test's own table gives back."""
    ids = {int(value): at for at, value in enumerate(TABLE.hash(list(range(2000))).tolist())}
    made = []
    for one in records:
        if isinstance(one, SequenceRecord):
            check(one)
            hashes = from_record(one).token_hashes.tolist()
            made.append((one.tenant, one.kind, [ids[value] for value in hashes]))
    return made


def reuse_of_run_h() -> list[bytes]:
    """What vLLM publishes when an unsalted prefix of one tenant is reused by another."""
    tokens = list(range(100, 116))
    none = [None] * 4
    return [
        batch(stored([1, 2, 3, 4], tokens, extra_keys=none, session_id="tenant:initech")),
        batch(
            stored([1, 2, 3], tokens[:12], extra_keys=none[:3], session_id="tenant:umbrella"),
            stored([4], tokens[12:], parent=3, extra_keys=[None], session_id="tenant:umbrella"),
            stored([9], [1, 2, 3, 4], parent=4, extra_keys=[None], session_id="tenant:umbrella"),
        ),
    ]


def test_a_prefix_that_another_tenant_reuses_is_told_once() -> None:
    made = feed(reuse_of_run_h())(0.0)
    (event,) = events(made)
    assert made == [event]
    assert (event.kind, event.detail) == (EventKind.REUSED, "tenant_differs")
    assert (event.tenant, event.other_tenant) == ("umbrella", "initech")
    assert (event.engine, event.kv_pool, event.at_ms) == ("e0", "pool", 1_000_000)
    tags = BlockTags(KEYS.tag_key)
    assert event.block == tags.block(1)
    assert event.session_tag == tags.session("tenant:umbrella")
    assert event.salt_tag is None
    check(event)


def test_a_tenant_reusing_its_own_prefix_is_nothing() -> None:
    again = batch(
        stored([1, 2], list(range(100, 108)), extra_keys=[None] * 2, session_id="tenant:initech")
    )
    assert feed([reuse_of_run_h()[0], again])(0.0) == []


def test_salted_tenants_with_the_same_text_never_meet() -> None:
    tokens = list(range(8))
    payload = batch(
        stored([1, 2], tokens, extra_keys=[["salt-acme"], None]),
        stored([3, 4], tokens, extra_keys=[["salt-globex"], None]),
        stored([5], tokens[:4], parent=2, extra_keys=[None]),
        stored([6], tokens[:4], parent=4, extra_keys=[None]),
    )
    assert feed([payload])(0.0) == []


@pytest.mark.parametrize("salt", ["salt-globex", None])
def test_one_block_under_two_salts_is_told(salt: str | None) -> None:
    more: dict[str, Any] = {} if salt is None else {"cache_salt": salt}
    made = events(
        feed(
            [
                batch(stored([-1, -2], [1, 2], size=1, cache_salt="salt-acme")),
                batch(stored([-1, -2], [1, 2], size=1, **more)),
            ]
        )(0.0)
    )
    tags = BlockTags(KEYS.tag_key)
    assert [(one.kind, one.detail, one.block) for one in made] == [
        (EventKind.REUSED, "salt_differs", tags.block(2**64 - 1))
    ]
    assert made[0].other_tenant == "acme"
    assert made[0].salt_tag == (None if salt is None else tags.salt(salt))


def test_a_block_stored_behind_another_salts_is_told() -> None:
    made = events(
        feed(
            [
                batch(stored([1], [1], size=1, cache_salt="salt-acme")),
                batch(stored([2], [2], size=1, parent=1, cache_salt="salt-globex")),
            ]
        )(0.0)
    )
    assert [(one.kind, one.detail) for one in made] == [
        (EventKind.ALLOCATED, "parent_salt_differs")
    ]
    assert (made[0].tenant, made[0].other_tenant) == ("globex", "acme")


def test_a_block_stored_behind_another_tenants_is_reuse_of_it() -> None:
    payload = batch(
        stored([1], [1], size=1, session_id="tenant:acme"),
        stored([2], [2], size=1, parent=1, session_id="tenant:globex"),
    )
    (event,) = events(feed([payload])(0.0))
    assert (event.kind, event.detail) == (EventKind.REUSED, "parent_tenant_differs")


def test_sessions_and_arrays_that_no_rule_knows_are_nothing() -> None:
    payload = batch(
        stored([1, 2], list(range(8)), extra_keys=[None] * 2, session_id="x"),
        stored([1, 2], list(range(8)), extra_keys=[None] * 2, session_id="y"),
        ["BlockStored", [1, 2], None, list(range(8)), 4, None, "GPU"],
        stored([1, 2], list(range(8)), cache_salt="salt-acme", medium="CPU"),
    )
    assert feed([payload])(0.0) == []


@pytest.mark.parametrize(
    "between",
    [
        {"type": "BlockRemoved", "block_hashes": [1], "medium": "GPU"},
        {"type": "AllBlocksCleared"},
    ],
)
def test_a_block_that_was_dropped_belongs_to_nobody(between: dict[str, Any]) -> None:
    payload = batch(
        stored([1], [1], size=1, session_id="tenant:acme"),
        between,
        stored([1], [1], size=1, session_id="tenant:globex"),
    )
    assert feed([payload])(0.0) == []


def test_what_was_known_before_a_loss_accuses_nobody() -> None:
    first = batch(stored([1], [1], size=1, session_id="tenant:acme"))
    second = batch(stored([1], [1], size=1, session_id="tenant:globex"))
    assert len(feed([first, second])(0.0)) == 1
    assert feed([first, Frame(second, is_after_loss=True)])(0.0) == []


def test_every_block_is_told_where_that_is_wanted() -> None:
    payload = batch(
        stored([1, 2], [1, 2], size=1, cache_salt="salt-acme"),
        stored([1], [1], size=1, cache_salt="salt-acme"),
        {"type": "BlockRemoved", "block_hashes": [1, 3], "medium": "GPU"},
    )
    made = events(feed([payload], every_block=True)(0.0))
    assert [(one.kind, one.detail, one.other_tenant) for one in made] == [
        (EventKind.ALLOCATED, None, None),
        (EventKind.ALLOCATED, None, None),
        (EventKind.REUSED, None, "acme"),
        (EventKind.RELEASED, None, "acme"),
        (EventKind.RELEASED, None, None),
    ]
    assert len({one.block for one in made}) == 3


def test_memory_is_bounded() -> None:
    payload = batch(stored(list(range(500)), [], size=0, cache_salt="salt-acme"))
    one = feed([payload], max_blocks=100)
    one(0.0)
    assert len(one.owners) == 100
    assert one.owners.counts["forgotten"] == 400


def test_broken_payloads_are_counted_and_the_rest_is_read() -> None:
    one = feed([b"\xc1", batch(5, stored([1], [1], size=1)), *reuse_of_run_h()])
    assert len(one(0.0)) == 1
    assert one.broken["undecodable"] == 1
    assert one.broken["wrong_type"] == 1


def vllm_request(at_s: float = 1000.0) -> list[bytes]:
    """Return a prompt of three full blocks and 2 tokens, then a response of 9 tokens."""
    more: dict[str, Any] = {"session_id": "tenant:acme"}
    return [
        batch(stored([1, 2, 3], list(range(12)), extra_keys=[None] * 3, **more), at_s=at_s),
        batch(stored([4], [12, 13, 50, 51], parent=3, extra_keys=[None], **more), at_s=at_s + 1),
        batch(stored([5], [52, 53, 54, 55], parent=4, extra_keys=[None], **more), at_s=at_s + 2),
    ]


def test_blocks_of_a_request_become_its_prompt_and_its_response() -> None:
    one = feed(vllm_request(), (), sequences=True)
    assert one(0.0) == []
    made = one(31.0)
    assert sides(made) == [
        ("acme", Kind.PROMPT, [*range(14), 50, 51]),
        ("acme", Kind.RESPONSE, [12, 13, *range(50, 56)]),
    ]
    prompt, response = (record for record in made if isinstance(record, SequenceRecord))
    assert prompt.request_id == response.request_id
    assert (prompt.started_at_ms, prompt.ended_at_ms) == (1_000_000, 1_000_000)
    assert (response.started_at_ms, response.ended_at_ms) == (1_000_000, 1_002_000)
    assert (prompt.model, prompt.kv_pool, prompt.key_id) == ("m", "pool", KEYS.key_id)
    assert one(99.0) == []


def test_the_same_events_give_the_same_ids_again() -> None:
    assert feed(vllm_request(), sequences=True).finish() == []
    first, second = feed(vllm_request(), sequences=True), feed(vllm_request(), sequences=True)
    first(0.0), second(0.0)
    made = [encode(record) for record in first.finish()]
    assert made == [encode(record) for record in second.finish()]
    assert len(made) == 2


def test_sglang_stores_a_response_in_one_piece() -> None:
    payloads = [
        batch(stored([1, 2, 3], [1, 2, 3], size=1, cache_salt="salt-acme")),
        batch(stored([4, 5], [4, 5], size=1, parent=3, cache_salt="salt-acme")),
        batch(stored([6, 7], [6, 7], size=1, parent=5, cache_salt="salt-acme")),
    ]
    one = feed(payloads, sequences=True)
    made = one(0.0) + one.finish()
    assert sides(made) == [
        ("acme", Kind.PROMPT, [1, 2, 3, 4]),
        ("acme", Kind.RESPONSE, [4, 5]),
        ("acme", Kind.PROMPT, [6, 7]),
    ]


def test_a_long_prompt_comes_in_pieces_and_is_one() -> None:
    payloads = [
        batch(stored(list(range(1, 1501)), [7] * 1500, size=1, cache_salt="salt-acme")),
        batch(
            stored(list(range(2001, 3101)), [8] * 1100, size=1, parent=1500, cache_salt="salt-acme")
        ),
    ]
    one = feed(payloads, sequences=True)
    made = one(0.0) + one.finish()
    assert sides(made) == [("acme", Kind.PROMPT, [7] * 1500 + [8] * 1100)]


def test_two_requests_on_one_prefix_stay_apart() -> None:
    more: dict[str, Any] = {"extra_keys": [None], "session_id": "tenant:acme"}
    payload = batch(
        stored([1], [1, 2, 3, 4], **more),
        stored([2], [5, 6, 7, 8], parent=1, **more),
        stored([3], [9, 10, 11, 12], parent=1, **more),
    )
    one = feed([payload], sequences=True)
    made = one(0.0) + one.finish()
    assert (("acme", Kind.PROMPT, [9, 10, 11, 12])) in sides(made)
    assert (("acme", Kind.RESPONSE, [5, 6, 7, 8])) in sides(made)


def test_hashes_under_two_secrets_never_stand_in_one_sequence() -> None:
    other = Secret(bytes(range(1, 33))).keys()
    first, *rest = vllm_request()
    one = feed([first], rest, keys=[KEYS, other], sequences=True)
    made = one(0.0) + one(50.0) + one.finish()
    by_key = {record.key_id for record in made if isinstance(record, SequenceRecord)}
    assert by_key == {KEYS.key_id, other.key_id}
    assert sides(one for one in made if getattr(one, "key_id", "") == KEYS.key_id) == [
        ("acme", Kind.PROMPT, list(range(12)))
    ]


def test_what_no_rule_maps_makes_no_sequence() -> None:
    one = feed([batch(stored([1], [1], size=1, session_id="x"))], sequences=True)
    assert one(0.0) + one.finish() == []
    assert one.counts["unmapped"] == 1


def test_no_salt_session_hash_or_id_leaves_as_it_is() -> None:
    block, salt = 0x1122334455667788, "salt-canary"
    payloads = [
        batch(
            stored([block, 2], [771_771, 771_772], size=1, cache_salt=salt, session_id="canary-s")
        ),
        batch(stored([block], [771_771], size=1, cache_salt="salt-other")),
    ]
    one = feed(payloads, sequences=True, every_block=True)
    out = b"".join(encode(record) for record in one(0.0) + one.finish())
    assert b"canary-s" not in out
    assert salt.encode() not in out
    for raw in (
        block.to_bytes(8, "big"),
        block.to_bytes(8, "little"),
        (771_771).to_bytes(4, "big"),
    ):
        assert raw not in out
    assert str(block).encode() not in out
