"""One engine: asks its endpoints, finds out what kind it is, and makes samples of the answers."""

from collections.abc import Mapping as Mapped
from typing import Final, NamedTuple

from detector.errors import ScrapeError
from ingest.schema_records import EngineRole, RuntimeSample
from ingest.scrape.documents import at_path, parse_document
from ingest.scrape.exposition import Exposition, parse_exposition
from ingest.scrape.http import Endpoint
from ingest.scrape.mapping import Document, Mapping
from ingest.scrape.reading import RankReading, read_ranks
from ingest.scrape.samples import EngineName, sample_of
from ingest.scrape.unreleased import RankMemory

RETRY_MS: Final = 60_000
"""When an info endpoint that failed is asked again: engines log every call."""

METRICS_PATH: Final = "/metrics"


class Identity(NamedTuple):
    """What the engine behind an endpoint is called. `kind` is "auto" where it must be found out."""

    engine: str
    kv_pool: str
    kind: str = "auto"
    role: EngineRole | None = None


class _Held(NamedTuple):
    """A document as last answered, None if it was not, and when it is asked again."""

    content: object | None
    next_ms: int


class Target:
    """Makes the samples of one engine. For one thread; times are Unix milliseconds.

    `problems` says which endpoints did not answer in the last scrape, by path.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        identity: Identity,
        mappings: Mapped[str, Mapping],
        *,
        refresh_ms: int,
    ) -> None:
        self.endpoint = endpoint
        self.identity = identity
        self.problems: dict[str, ScrapeError] = {}
        self._mappings = mappings
        self._refresh_ms = refresh_ms
        self._found: str | None = None
        self._held: dict[tuple[str, ...], _Held] = {}
        self._memories: dict[int, RankMemory] = {}
        self._restarts: dict[int, dict[str, float]] = {}

    @property
    def kind(self) -> str | None:
        """The kind of engine, None until it is known."""
        return self._found if self.identity.kind == "auto" else self.identity.kind

    def samples(self, now_ms: int) -> list[RuntimeSample]:
        """Return a sample for each rank. Raises ScrapeError if the engine tells nothing.

        Raises SettingsError for a token file that cannot be used.
        """
        try:
            readings, mapping = self._read(now_ms)
        except BaseException:
            self._interrupt()
            raise
        for one in readings:
            self._memories.setdefault(one.rank, RankMemory())
        has_ranks = len(self._memories) > 1
        return [
            sample_of(
                one,
                mapping,
                self._memories[one.rank],
                self._name(one, has_ranks=has_ranks),
                now_ms,
            )
            for one in readings
        ]

    def _read(self, now_ms: int) -> tuple[list[RankReading], Mapping]:
        self.problems = {}
        page = self._page(METRICS_PATH if self.kind is None else self._mapping().metrics_path)
        mapping = self._mapping() if self.kind is not None else self._recognized(page)
        metrics = None
        if page is not None:
            names = mapping.metric_names()
            metrics = parse_exposition(page, names.__contains__)
            self._look_whose(metrics, mapping)
        readings = read_ranks(mapping, metrics, self._documents(mapping, now_ms))
        if self._has_restarted(readings):
            self._forget()
            readings = read_ranks(mapping, metrics, self._documents(mapping, now_ms))
        if not any(one.numbers or one.counters for one in readings):
            raise next(iter(self.problems.values()), self._says_nothing())
        return readings, mapping

    def _page(self, path: str) -> str | None:
        """Return the metrics as text; None if there are none, which `problems` tells."""
        try:
            return self.endpoint.get(path).body
        except ScrapeError as error:
            if error.reason not in ("not_found", "unauthorized"):
                raise
            self.problems[path] = error
            return None

    def _mapping(self) -> Mapping:
        return self._mappings[self.kind or ""]

    def _recognized(self, page: str | None) -> Mapping:
        """Find out the kind: by the names of metrics, else by what an info endpoint tells."""
        for kind, mapping in self._mappings.items():
            if page is not None and any(
                line.startswith(prefix) for prefix in mapping.prefixes for line in page.split("\n")
            ):
                self._found = kind
                return mapping
        for kind, mapping in self._mappings.items() if page is None else ():
            for document in mapping.documents:
                content = document.identifies and self._asked(document)
                if content and at_path(content, document.identifies or "") is not None:
                    self._found = kind
                    return mapping
        if page is None:
            raise self.problems[METRICS_PATH]
        raise self._says_nothing()

    def _look_whose(self, metrics: Exposition, mapping: Mapping) -> None:
        """Refuse the metrics of another server: every number of theirs would be absent."""
        if not any(name.startswith(tuple(mapping.prefixes)) for name in metrics.names):
            raise self._says_nothing()

    def _documents(self, mapping: Mapping, now_ms: int) -> list[tuple[Document, object]]:
        """Ask for what is due; what is asked only at the start is remembered."""
        for document in mapping.documents:
            held = self._held.get(document.paths)
            if held is not None and now_ms < held.next_ms:
                continue
            content, wait_ms = self._asked(document), RETRY_MS
            if content is not None:
                wait_ms = 0 if document.when == "scrape" else self._refresh_ms
            self._held[document.paths] = _Held(content, now_ms + wait_ms)
        answered = [(one, self._held[one.paths].content) for one in mapping.documents]
        return [(document, content) for document, content in answered if content is not None]

    def _asked(self, document: Document) -> object | None:
        for path in document.paths:
            try:
                return parse_document(
                    self.endpoint.get(path).body, where=f"{self.endpoint.name}{path}"
                )
            except ScrapeError as error:
                self.problems[path] = error
                if error.reason != "not_found":
                    return None
        return None

    def _has_restarted(self, readings: list[RankReading]) -> bool:
        """Tell whether counters fell that fall only when the engine starts anew.

        One that is gone has fallen too: it comes with its first event. Without a rank of its own
        it moves on to a lower one that comes later.
        """
        told = {one.rank: one.restarts for one in readings if one.has_metrics}
        new = [
            (name, value)
            for rank, restarts in told.items()
            for name, value in restarts.items()
            if name not in self._restarts.get(rank, {})
        ]
        fell = any(
            restarts[name] < before
            if name in restarts
            else not any(other == name and value >= before for other, value in new)
            for rank, restarts in told.items()
            for name, before in self._restarts.get(rank, {}).items()
        )
        self._restarts |= told
        return fell

    def _forget(self) -> None:
        """Forget what held for the process that is gone."""
        self._memories.clear()
        self._held.clear()

    def _interrupt(self) -> None:
        """A scrape failed: the engine may be another one when it answers again."""
        for memory in self._memories.values():
            memory.interrupt()
        self._held.clear()

    def _name(self, reading: RankReading, *, has_ranks: bool) -> EngineName:
        identity = self.identity
        rank = reading.rank if has_ranks else None
        return EngineName(identity.engine, identity.kv_pool, rank, identity.role)

    def _says_nothing(self) -> ScrapeError:
        return ScrapeError(
            "unrecognized",
            "nothing there is known of any engine",
            where=self.endpoint.name,
            hint="check the port, or describe the engine in scrape.mapping_files",
        )
