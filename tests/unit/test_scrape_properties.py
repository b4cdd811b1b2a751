"""Whatever engines answer: a sample that the wire accepts, or a ScrapeError; nothing else."""

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from detector.errors import ScrapeError
from ingest.schema import check, decode, encode
from ingest.schema_records import Quality, RuntimeSample
from ingest.scrape.documents import parse_document
from ingest.scrape.exposition import parse_exposition
from ingest.scrape.mapping import Mapping, load_mappings
from ingest.scrape.reading import read_ranks
from ingest.scrape.samples import EngineName, sample_of
from ingest.scrape.unreleased import RankMemory

MAPPINGS = load_mappings()
NAMES = {kind: sorted(mapping.metric_names()) for kind, mapping in MAPPINGS.items()}

values = st.one_of(
    st.floats(),
    st.integers(-5, 2**60).map(float),
    st.sampled_from([0.0, 1.0, 0.5, 512.0, 1e18]),
)
labels = st.dictionaries(
    st.sampled_from(["engine", "dp_rank", "tp_rank", "num_gpu_blocks", "block_size", "x"]),
    st.one_of(st.integers(-1, 3).map(str), st.text(max_size=5)),
    max_size=4,
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9))
words = st.sampled_from(
    ["loads", "dp_rank", "num_used_tokens", "version", "data", "max_model_len", "queues", "mode"]
)
json_values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=12,
)


def line(name: str, of: dict[str, str], value: float) -> str:
    escaped = {
        key: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for key, text in of.items()
    }
    inside = ",".join(f'{key}="{text}"' for key, text in escaped.items())
    return f"{name}{{{inside}}} {value!r}\n".replace("inf", "Inf").replace("nan", "NaN")


def samples(mapping: Mapping, page: str | None, contents: list[object]) -> list[RuntimeSample]:
    metrics = None if page is None else parse_exposition(page, mapping.metric_names().__contains__)
    documents = list(zip(mapping.documents, contents, strict=False))
    return [
        sample_of(one, mapping, RankMemory(), EngineName("e", "p", one.rank, None), 0)
        for one in read_ranks(mapping, metrics, documents)
    ]


@given(kind=st.sampled_from(sorted(MAPPINGS)), data=st.data())
def test_any_metrics_and_documents_make_samples_that_the_wire_accepts(
    kind: str, data: st.DataObject
) -> None:
    series = st.tuples(st.sampled_from(NAMES[kind]), labels, values)
    page = "".join(line(*one) for one in data.draw(st.lists(series, max_size=12)))
    contents: list[object] = data.draw(st.lists(json_values, max_size=3))
    for sample in samples(MAPPINGS[kind], page, contents):
        assert decode(RuntimeSample, encode(sample)) == sample
        check(sample)
        has_number = sample.unreleased_tokens is not None
        assert has_number == (sample.unreleased_quality != Quality.UNKNOWN)


@given(kind=st.sampled_from(sorted(MAPPINGS)), text=st.text(), data=st.data())
def test_any_text_is_read_or_refused(kind: str, text: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES[kind]))
    for page in (text, f"{name}{text}", f"{name}{{{text}}} 1"):
        with suppress(ScrapeError):
            assert samples(MAPPINGS[kind], page, [])


@given(text=st.one_of(st.text(), json_values.map(json.dumps)))
def test_any_document_is_read_or_refused(text: str) -> None:
    with suppress(ScrapeError):
        content = parse_document(text, where="here")
        assert samples(MAPPINGS["sglang"], None, [content] * 3)
