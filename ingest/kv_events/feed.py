"""From published KV events to records: where isolation is broken, and sequences if asked for."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from detector.errors import RecordError
from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId
from detector.sketch.token_table import TokenTable
from ingest.door import split
from ingest.kv_events.chains import Chains, Side
from ingest.kv_events.decode import Cleared, KvBatch, Removed, Stored, decode_batch
from ingest.kv_events.frames import Frames
from ingest.kv_events.owners import BlockOwners, Crossing, Party
from ingest.kv_events.settings import KvEventSettings, KvEventSource
from ingest.kv_events.tags import BlockTags
from ingest.schema_records import EngineEvent, SequenceRecord
from ingest.schema_sequence import to_record
from ingest.sources.base import RawRequest
from ingest.tenancy import Tenancy

KvRecord = EngineEvent | SequenceRecord


class KvEventFeed:
    """Gives the records of one publisher; called in every turn of a sidecar, never waits.

    Tokens are hashed under the table of the moment as soon as they are read, and only if sequences
    are wanted. `counts` says what was made, `broken` by reason what could not be used. One thread.
    """

    def __init__(
        self,
        frames: Frames,
        source: KvEventSource,
        settings: KvEventSettings,
        *,
        tenancy: Tenancy,
        table: Callable[[float], TokenTable],
        tags: Callable[[], BlockTags],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.messages = frames.counts
        self.engine = source.engine
        self.is_full: Callable[[], bool] = lambda: False
        """True while nothing more should be read; what the publisher drops is asked for again."""
        self.is_ending: Callable[[], bool] = lambda: False
        """True once nothing more will be read: requests are then taken as ended."""
        self.owners = BlockOwners(settings.max_blocks, every_block=settings.every_block)
        self._frames = frames
        self._source = source
        self.kv_pool = source.kv_pool or source.engine
        self._tenancy = tenancy
        self._table = table
        self._tags = tags
        self._chains = Chains(settings.idle_ms) if settings.sequences else None
        self._key_id: str | None = None
        self._newest_ms: int | None = None
        self._newest_s = 0.0

    def __call__(self, now_s: float) -> list[KvRecord]:
        """Return the records of what has come since the last time."""
        made: list[KvRecord] = []
        if self.is_full():
            return made
        table = self._table(now_s)
        if self._chains is not None and table.key_id != self._key_id:
            # hashes under two secrets never stand in one sequence
            made += self._sequences(self._chains.end_all())
            self._key_id = table.key_id
        for frame in self._frames.poll(now_s):
            if frame.is_after_loss:
                self.owners.clear()
            try:
                batch = decode_batch(frame.payload)
            except RecordError as error:
                self.broken[error.reason] += 1
                continue
            self.broken.update(batch.broken)
            self._newest_ms, self._newest_s = batch.at_ms, now_s
            made += self._of_batch(batch, table)
        if self._chains is not None and self._newest_ms is not None:
            passed_ms = int((now_s - self._newest_s) * 1000)
            made += self._sequences(self._chains.due(self._newest_ms + passed_ms))
        return made + self.finish() if self.is_ending() else made

    def finish(self) -> list[KvRecord]:
        """Return the sequences of requests that have not ended."""
        return [] if self._chains is None else list(self._sequences(self._chains.end_all()))

    def _of_batch(self, batch: KvBatch, table: TokenTable) -> Iterator[KvRecord]:
        for event in batch.events:
            match event:
                case Stored():
                    yield from self._of_stored(event, batch, table)
                case Removed():
                    yield from self._events(self.owners.remove(event, batch.rank), batch.at_ms)
                case Cleared():
                    self.owners.clear()

    def _of_stored(self, stored: Stored, batch: KvBatch, table: TokenTable) -> Iterator[KvRecord]:
        party = self._party(stored, batch.rank)
        new = [one for one in stored.blocks if self.owners.owner(stored, batch.rank, one) is None]
        yield from self._events(self.owners.store(stored, batch.rank, party), batch.at_ms)
        if self._chains is None or not new or not len(stored.token_ids):
            return
        if len(new) < len(stored.blocks):
            return  # a report of reuse: these tokens have been sent
        hashes = table.hash(stored.token_ids)
        yield from self._sequences(
            self._chains.store(stored, hashes, party=party, rank=batch.rank, at_ms=batch.at_ms)
        )

    def _party(self, stored: Stored, rank: int) -> Party:
        """Return who stores; a salt that stands with the first block only is that of the chain."""
        salt, salt_known = stored.salt, stored.salt_known
        tags = self._tags()
        tag = None if salt is None else tags.salt(salt)
        tenant = self._tenant(salt, stored.session)
        if stored.parent is not None and stored.salt_is_inherited:
            owner = self.owners.owner(stored, rank, stored.parent)
            tag, salt_known = (None, False) if owner is None else (owner.salt, owner.salt_known)
            if tenant is None and stored.session is None and owner is not None and tag is not None:
                tenant = owner.tenant
        session = None if stored.session is None else tags.session(stored.session)
        return Party(tenant, tag, salt_known, session)

    def _tenant(self, salt: str | None, session: str | None) -> str | None:
        identity = {"cache_salt": salt, "session_id": session}
        known = {name: value for name, value in identity.items() if value is not None}
        request = RawRequest(request_id="kv", started_at_ms=0, identity=known)
        tenant = self._tenancy.tenant(request)
        return tenant if tenant is not None and tenant.isprintable() else None

    def _events(self, crossings: Iterable[Crossing], at_ms: int) -> Iterator[EngineEvent]:
        tags = self._tags()
        for one in crossings:
            self.counts[one.detail or str(one.kind)] += 1
            yield EngineEvent(
                kind=one.kind,
                engine=self._source.engine,
                kv_pool=self.kv_pool,
                at_ms=at_ms,
                tenant=None if one.party is None else one.party.tenant,
                other_tenant=None if one.owner is None else one.owner.tenant,
                block=tags.block(one.block),
                salt_tag=None if one.party is None else one.party.salt,
                session_tag=None if one.party is None else one.party.session,
                detail=one.detail,
            )

    def _sequences(self, sides: Iterable[Side]) -> Iterator[SequenceRecord]:
        for side in sides:
            if side.party.tenant is None:
                self.counts["unmapped"] += 1
                continue
            self.counts["sequences"] += 1
            for part in split(side.hashes, ()):
                yield to_record(
                    Sequence(
                        tenant=TenantId(side.party.tenant),
                        request_id=self._request_id(side),
                        kv_pool=PoolId(self.kv_pool),
                        engine=EngineId(self._source.engine),
                        model=self._source.model,
                        kind=side.kind,
                        started_at_ms=side.started_ms,
                        ended_at_ms=side.started_ms if side.kind is Kind.PROMPT else side.ended_ms,
                        token_hashes=part.hashes,
                        key_id=self._key_id or "",
                        part=part.number,
                        parts=part.total,
                    )
                )

    def _request_id(self, side: Side) -> RequestId:
        """Name a request that no event names, the same again in a replay."""
        return RequestId(f"kv-{self._tags().block(side.first_block)}-{side.started_ms}")
