"""Workers with pools of their own that share what is common over a broker in memory."""

from collections.abc import Iterable

from detector.finding import Finding
from detector.index.memory import Memory
from detector.index.selection import sampling_of
from detector.index.shared_memory import Exchanged, SharedMemory
from detector.model import Sequence
from detector.pipeline import Detector
from detector.settings import DetectionSettings
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Keys
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.exchange import Exchange
from ingest.broker import Message
from ingest.memory_io import MemoryBroker

TAG_KEY = bytes(range(32))
KEY_ID = "0badc0de"
RANGES = 4
PREFIX = "t"


def broker(ranges: int = RANGES) -> MemoryBroker:
    """Return a broker with the two topics."""
    return MemoryBroker({f"{PREFIX}.shingles": ranges, f"{PREFIX}.commonness": ranges})


class Worker:
    """One worker: a memory, a detector for each partition, and the exchange with the others."""

    def __init__(
        self,
        of: MemoryBroker,
        settings: DetectionSettings,
        *,
        name: bytes,
        owns: Iterable[int] = (),
        ranges: int = RANGES,
        share: bool = True,
        keys: Keys | None = None,
        prefix: str = PREFIX,
    ) -> None:
        tag_key, key_id = (TAG_KEY, KEY_ID) if keys is None else (keys.tag_key, keys.key_id)
        self.settings = settings
        self.memory = (
            SharedMemory(settings.commonness, TagKeys(tag_key))
            if share
            else Memory(settings.commonness)
        )
        self.detectors: dict[int, Detector] = {}
        self.findings: dict[str, Finding] = {}
        self._publisher = of.publisher()
        self._share = isinstance(self.memory, SharedMemory)
        if isinstance(self.memory, SharedMemory):
            self.exchange = Exchange(
                self.memory, settings.commonness, key_id=key_id,
                sampling=sampling_of(settings.index), ranges=ranges, prefix=prefix,
                writer=name.ljust(8, b"."),
            )  # fmt: skip
            self.feed = CommonnessFeed(of.reader(), self.exchange)
            assert self.feed.start(timeout_s=10)
            for partition in owns:
                self.feed.own(partition)

    def observe(self, *sequences: Sequence, partition: int = 0) -> list[Finding]:
        """Compare sequences in event order; return what they bring."""
        detector = self.detectors.setdefault(partition, Detector(self.settings, memory=self.memory))
        found = [one for sequence in sequences for one in detector.observe(sequence)]
        self.findings |= {one.id: one for one in found}
        return found

    @property
    def exchanged(self) -> Exchanged:
        """What was told and heard; only of one that shares."""
        assert isinstance(self.memory, SharedMemory)
        return self.memory.exchanged

    def turn(self) -> int:
        """Take what the others have told and tell what is new; return how much was either."""
        if not self._share:
            return 0
        taken = self.feed.poll()
        messages = self.exchange.messages()
        for message in messages:
            self.publish(message)
        return taken + len(messages)

    def publish(self, message: Message) -> None:
        """Send a message and wait for the broker."""
        self._publisher.send(message).result()


def settle(*workers: Worker) -> None:
    """Let the workers talk until nobody has anything to tell."""
    while sum([worker.turn() for worker in workers]):
        pass
