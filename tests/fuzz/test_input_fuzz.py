"""120,000 damaged records through lines, reader, door and schema: nothing escapes, all is counted.

Seeded, so a failure repeats. BLEEDWATCH_FUZZ_SEED picks another seed.
"""

import contextlib
import gzip
import io
import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from detector.errors import InputError
from detector.sketch.token_table import Secret, TokenTable
from ingest.chat_template import ChatTemplate, ChatTemplateSettings
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.schema import Encoding, decode, encode
from ingest.schema_records import SequenceRecord
from ingest.schema_sequence import to_record
from ingest.sources.detect import detect_format
from ingest.sources.field_map import FieldMap
from ingest.sources.jsonl import JsonlLog
from ingest.sources.lines import Lines
from ingest.tenancy import Tenancy, TenancySettings

SEED = int(os.environ.get("BLEEDWATCH_FUZZ_SEED", "20261129"))
STREAMS = 600
LINES_PER_STREAM = 200
MAX_LINE = 4000

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**64,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    -1e308,
    "",
    "x" * 600,
    "a\nb",
    "\ud800",
    "\x00",
    "ünï",
    [],
    [0],
    [-1],
    [2**20],
    [1, "2"],
    [[1]],
    [True],
    [1.0],
    [151644, 872, 198, 5, 151645],
    {},
    {"X": "y"},
    {"X": 1},
]
MAP = FieldMap(
    request_id="a.id",
    ts="a.time",
    time="rfc3339",
    prompt_ids="a.0.ids",
    response_ids="x.y",
    identity={"tenant": "a.who"},
)


def _record(random_: random.Random) -> dict[str, Any]:
    ids = [random_.choice((151644, 872, 198, 151645, 5, 6, 7)) for _ in range(20)]
    return {
        "request_id": f"req-{random_.randrange(50)}",
        "ts": random_.uniform(-1e4, 1e4),
        "ts_end": random_.uniform(-1e4, 1e4),
        "node": "engine-1",
        "tenant": random_.choice(("acme", "globex")),
        "model": "m",
        "session": 7,
        "account": None,
        "end_user": "u",
        "parent_id": "p",
        "finish_reason": "stop",
        "status": 200,
        "gateway_cache_hit": False,
        "reported_prompt_tokens": 20,
        "headers": {"X-Tenant": "acme"},
        "prompt_ids": [151644, *ids],
        "response_ids": ids[: random_.randrange(20)],
    }


def _swap(random_: random.Random) -> bytes:
    record = _record(random_)
    for _ in range(random_.randint(1, 3)):
        record[random_.choice(list(record))] = random_.choice(ODD)
    if random_.random() < 0.2:
        del record[random_.choice(list(record))]
    return json.dumps(record).encode(errors="surrogatepass")


def _damage(random_: random.Random) -> bytes:
    line = bytearray(json.dumps(_record(random_)).encode())
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(line) + 1)
        action = random_.randrange(5)
        if action == 0:
            del line[at:]
        elif action == 1:
            line[at : at + 1] = random_.randbytes(1)
        elif action == 2:
            line[at:at] = random_.randbytes(random_.randrange(8))
        elif action == 3:
            del line[at : at + random_.randrange(30)]
        else:
            line[at:at] = line[at : at + random_.randrange(200)]
    return bytes(line)


def _noise(random_: random.Random) -> bytes:
    return random_.choice(
        (
            random_.randbytes(random_.randrange(60)),
            b" " * random_.randrange(4),
            b"[" * random_.randrange(3000),
            b'{"a":' * random_.randrange(600),
            b"x" * random_.randrange(3 * MAX_LINE),
            json.dumps(
                {"a": {"id": "i", "time": "2026-01-01", "who": 3}, "x": {"y": [5]}}
            ).encode(),
        )
    )


MAKERS: tuple[Callable[[random.Random], bytes], ...] = (_swap, _swap, _damage, _damage, _noise)


def _stream(random_: random.Random) -> bytes:
    lines = (random_.choice(MAKERS)(random_) for _ in range(LINES_PER_STREAM))
    return random_.choice((b"\n", b"\r\n")).join(lines)


def _expected(data: bytes) -> int:
    """Count the records of a plain stream: lines that are too long or not blank."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return sum(len(line) > MAX_LINE or not (not line or line.isspace()) for line in lines)


@pytest.fixture(scope="module")
def door_parts() -> tuple[TokenTable, Tenancy, ChatTemplate]:
    settings = TenancySettings.model_validate(
        {
            "rules": [
                {"kind": "request_id", "pattern": r"req-1(?P<tenant>\d)"},
                {"kind": "header", "name": "x-tenant", "tenants": {"acme": "acme-group"}},
                {"kind": "field"},
            ]
        }
    )
    table = TokenTable(Secret(bytes(range(32))).keys().hash_key)
    return table, Tenancy(settings), ChatTemplate(ChatTemplateSettings())


def _run(
    data: bytes, fields: FieldMap | None, parts: tuple[TokenTable, Tenancy, ChatTemplate]
) -> tuple[Coverage, int]:
    """Read a stream to its end; return the reader's coverage and the sequences let in."""
    read, refused = Coverage(), Coverage()
    lines = Lines(io.BytesIO(data), coverage=read, max_line_bytes=MAX_LINE)
    door = Door(*parts, refused)
    requests = admitted = sequences = 0
    for request in JsonlLog(lines, engine=None, coverage=read, fields=fields):
        requests += 1
        sides = (request.prompt_ids is not None) + (request.response_ids is not None)
        before = refused.unmapped_tenants + sum(refused.broken_by_reason.values())
        made = door.sequences(request)
        turned_away = refused.unmapped_tenants + sum(refused.broken_by_reason.values()) - before
        assert turned_away in (0, 1)
        admitted += not turned_away
        assert len(made) == (0 if turned_away else sides)
        sequences += len(made)
        for sequence in made:
            record = to_record(sequence)
            for encoding in Encoding:
                decode(SequenceRecord, encode(record, encoding), encoding)
    assert requests == read.requests
    turned = refused.unmapped_tenants + sum(refused.broken_by_reason.values())
    assert requests == admitted + turned
    return read, sequences


def test_every_record_of_every_stream_is_counted(
    door_parts: tuple[TokenTable, Tenancy, ChatTemplate],
) -> None:
    random_ = random.Random(SEED)
    sequences = 0
    reasons: set[str] = set()
    for number in range(STREAMS):
        data = _stream(random_)
        coverage, let_in = _run(data, MAP if number % 4 == 0 else None, door_parts)
        assert coverage.requests + sum(coverage.broken_by_reason.values()) == _expected(data)
        sequences += let_in
        reasons |= set(coverage.broken_by_reason)
    assert sequences > STREAMS  # the damage leaves enough that the door has work
    assert reasons >= {"not_json", "wrong_type", "missing_field", "time_range", "line_too_long"}


@pytest.mark.parametrize("pack", [zstandard.compress, gzip.compress])
def test_damaged_packed_streams_end_in_a_count(
    door_parts: tuple[TokenTable, Tenancy, ChatTemplate], pack: Callable[[bytes], bytes]
) -> None:
    random_ = random.Random(SEED)
    for _ in range(60):
        packed = bytearray(pack(_stream(random_)))
        for _ in range(random_.randrange(3)):
            packed[random_.randrange(4, len(packed))] ^= 1 << random_.randrange(8)
        cut = bytes(packed[: random_.randrange(5, len(packed) + 1)])
        with contextlib.suppress(InputError):  # a flipped bit may ask for a window beyond the limit
            _run(cut, None, door_parts)


def test_detection_answers_or_says_that_it_cannot() -> None:
    random_ = random.Random(SEED)
    for _ in range(2000):
        lines = [random_.choice(MAKERS)(random_) for _ in range(random_.randrange(4))]
        with contextlib.suppress(InputError):
            assert detect_format(lines)
