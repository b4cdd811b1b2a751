"""The feed of an owner of ranges: what was told before it came is read, foreign ranges are not."""

from typing import Any

import pytest

from detector.streaming.bands_exchange import BandsExchange
from detector.streaming.bands_feed import BandsFeed
from ingest.broker import Message
from ingest.memory_io import MemoryBroker
from tests.unit.sequences import SETTINGS
from tests.unit.wire import RING

TOPIC, RANGES = "bands", 3
GARBAGE = b"no record of bands"


class Site:
    """A feed on a topic that holds what no worker makes: each record that is taken is counted."""

    def __init__(self) -> None:
        self.broker = MemoryBroker({TOPIC: RANGES})
        self.exchange = BandsExchange(
            SETTINGS, ring=lambda: RING, ranges=RANGES, topic=TOPIC, memory_bytes=1 << 20
        )
        self.feed = BandsFeed(self.broker.reader(), self.exchange)

    def send(self, partition: int) -> None:
        self.broker.append(Message(TOPIC, GARBAGE, partition=partition))

    @property
    def bad(self) -> int:
        return sum(self.exchange.bad_records.values())


@pytest.fixture
def site() -> Any:
    made = Site()
    yield made
    made.feed.close()


def test_a_range_is_read_from_the_first_record_that_is_kept(site: Site) -> None:
    site.send(1)
    site.send(1)
    site.feed.own(1)
    site.send(1)
    assert site.feed.poll() == 3
    assert site.bad == 3


def test_ranges_of_others_are_not_read(site: Site) -> None:
    site.feed.own(1)
    site.send(0)
    site.send(2)
    assert (site.feed.poll(), site.bad) == (0, 0)


def test_a_range_that_moved_away_is_read_no_longer_and_the_rest_is(site: Site) -> None:
    site.feed.own(0)
    site.feed.own(1)
    site.feed.disown(1)
    site.send(0)
    site.send(1)
    assert (site.feed.poll(), site.bad) == (1, 1)


def test_a_range_that_comes_back_is_read_again(site: Site) -> None:
    site.feed.own(1)
    site.send(1)
    assert site.feed.poll() == 1
    site.feed.disown(1)
    site.feed.own(1)
    assert site.feed.poll() == 1


def test_giving_up_what_was_never_owned_changes_nothing(site: Site) -> None:
    site.feed.own(0)
    site.feed.disown(2)
    site.send(0)
    assert site.feed.poll() == 1


def test_owning_a_range_twice_does_not_count_what_was_read(site: Site) -> None:
    site.send(0)
    site.feed.own(0)
    site.feed.own(1)
    assert site.feed.poll() == 1
    site.send(1)
    assert site.feed.poll() == 1
    assert site.bad == 2
