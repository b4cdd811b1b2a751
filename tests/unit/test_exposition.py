"""Metrics of engines as text: wanted ones are read, others cost and break nothing."""

import pytest

from detector.errors import ScrapeError
from ingest.scrape.exposition import Exposition, parse_exposition


def parsed(text: str, *wanted: str) -> Exposition:
    return parse_exposition(text, set(wanted).__contains__)


def test_wanted_samples_have_labels_and_value() -> None:
    read = parsed('# TYPE a gauge\na{x="1",y="p \\"q\\" {r}"} 2.5\na{x="2"} 3\nb 4\n', "a")
    assert [(dict(one.labels), one.value) for one in read.samples["a"]] == [
        ({"x": "1", "y": 'p "q" {r}'}, 2.5),
        ({"x": "2"}, 3.0),
    ]
    assert set(read.samples) == {"a"}
    assert read.names == {"a", "b"}


def test_a_metric_that_is_declared_without_a_sample_is_there() -> None:
    read = parsed("# HELP a_total Failures.\n# TYPE a_total counter\n", "a_total")
    assert read.samples == {}
    assert "a_total" in read.names


def test_a_name_that_begins_like_a_wanted_one_is_another() -> None:
    assert parsed("a_total 1\na_totals 2\na_total_x 3\n", "a_total").samples["a_total"] == [({}, 1)]


def test_odd_numbers_come_through_as_they_are() -> None:
    values = [one.value for one in parsed("a NaN\na +Inf\na -1\na 1e3\n", "a").samples["a"]]
    assert values[1:] == [float("inf"), -1.0, 1000.0]
    assert values[0] != values[0]


def test_broken_lines_of_other_metrics_do_not_matter() -> None:
    assert parsed('b{x="1 2 3\n\n}{\n  \na 1\n', "a").samples["a"] == [({}, 1)]


@pytest.mark.parametrize("line", ["a one", "a", 'a{x="1', 'a{x="1" 2', "a{x=1} 2", "a 1 2 3 4x"])
def test_a_wanted_line_that_is_broken_fails(line: str) -> None:
    with pytest.raises(ScrapeError) as caught:
        parsed(f"{line}\n", "a")
    assert caught.value.reason == "malformed"
    assert "one" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "<html><body>hello</body></html>", "{}"])
def test_what_is_no_such_text_has_no_samples(text: str) -> None:
    assert parsed(text, "a").samples == {}
