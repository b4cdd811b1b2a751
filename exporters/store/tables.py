"""Every table of the store: SQLAlchemy Core, the same on SQLite and PostgreSQL.

Times are integer milliseconds since 1970, UTC. Columns named `body`, and those that hold lists, are
JSON as text. No table holds text of a tenant, tokens or hashes of them; a finding's body is numbers
and one sentence, and its digests are keyed, of ten tokens each. A change here needs a migration in
`migrations/versions`; a test compares both.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

NAMES: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
"""Constraints have names of their own, so that a later migration can name them."""

metadata = MetaData(naming_convention=NAMES)

_NUMBERED = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself for INTEGER only, which is 64 bits there."""


def _time(name: str, *, known: bool = True) -> Column[int]:
    return Column(name, BigInteger, nullable=not known)


def _text(name: str, *, known: bool = True) -> Column[str]:
    return Column(name, Text, nullable=not known)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


incidents = Table(
    "incidents",
    metadata,
    Column("id", Text, primary_key=True),
    _text("state"),
    _text("severity"),
    _text("confidence"),
    _text("kv_pool"),
    _text("title"),
    _text("lead"),
    _time("opened_at_ms"),
    _time("last_seen_ms"),
    _time("created_at_ms"),
    _time("heard_at_ms"),
    _time("resolved_at_ms", known=False),
    _time("acknowledged_at_ms", known=False),
    _text("acknowledged_by", known=False),
    _text("merged_into", known=False),
    _count("finding_count"),
    _text("kv_pools"),
    _text("rules"),
    _text("tenants"),
    _count("version"),
    Index(None, "state", "heard_at_ms"),
    Index(None, "state", "created_at_ms", "id"),
    Index(None, "created_at_ms", "id"),
)
"""One row for each incident: an `exporters.incidents.model.Incident`, field by field. Its gravest
finding is repeated in `severity`, `confidence`, `kv_pool` and `title`, which lists filter by."""

incident_changes = Table(
    "incident_changes",
    metadata,
    Column("incident_id", ForeignKey("incidents.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    _time("at_ms"),
    _text("kind"),
    _text("reason"),
    _text("by", known=False),
)
"""Every change of an incident with its reason, in order from 1; `by` names who, None is us."""

incident_spans = Table(
    "incident_spans",
    metadata,
    Column("kv_pool", Text, primary_key=True),
    Column("from_ms", BigInteger, primary_key=True),
    _time("until_ms"),
    Column("incident_id", ForeignKey("incidents.id"), nullable=False, index=True),
)
"""Where and when an incident is, in event time: what is found here belongs to it. Spans of one pool
never touch."""

findings = Table(
    "findings",
    metadata,
    Column("id", Text, primary_key=True),
    _text("rule"),
    _text("severity"),
    _text("confidence"),
    _text("kv_pool"),
    _text("engine"),
    _text("model"),
    _time("observed_at_ms"),
    _time("detected_at_ms"),
    _time("observed_from_ms"),
    _time("observed_until_ms"),
    _text("sink_tenant"),
    _text("sink_request"),
    _text("source_tenant"),
    _text("source_request"),
    Column("incident_id", ForeignKey("incidents.id"), index=True),
    _text("verdict", known=False),
    _text("verdict_by", known=False),
    _time("verdict_at_ms", known=False),
    _text("body"),
    Index(None, "detected_at_ms", "id"),
    Index(None, "kv_pool", "detected_at_ms", "id"),
    Index(None, "rule", "detected_at_ms", "id"),
    Index(None, "severity", "detected_at_ms", "id"),
    Index(None, "confidence", "detected_at_ms", "id"),
    Index(None, "verdict", "detected_at_ms", "id"),
    Index(None, "sink_tenant", "sink_request"),
    Index(None, "sink_tenant", "detected_at_ms", "id"),
    Index(None, "source_tenant", "detected_at_ms"),
)
"""The surest version of each finding. `observed_from_ms` and `observed_until_ms` span the event
times of all its versions. One that is too weak for an incident has none. `body` is the whole
finding; the columns are what lists filter by."""

look_backs = Table(
    "look_backs",
    metadata,
    Column("finding_id", ForeignKey("findings.id", ondelete="CASCADE"), primary_key=True),
    _time("at_ms"),
    _text("body"),
)
"""What looking back for the sources of a finding has found; `body` is offsets, lengths, counts."""

finding_digests = Table(
    "finding_digests",
    metadata,
    Column("finding_id", ForeignKey("findings.id", ondelete="CASCADE"), primary_key=True),
    _text("key_id"),
    Column("shingles", LargeBinary, nullable=False),
)
"""Digests of the shingles that a finding rests on, 8 bytes each, under the key that `key_id` names:
for allow-lists, and for owners of a text who look whether it is theirs."""

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("sender", Text, primary_key=True),
    _time("sent_ms"),
)
"""When the newest heartbeat of each sender that has arrived was made."""

request_rows = Table(
    "request_rows",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("request_id", Text, primary_key=True),
    Column("started_at_ms", BigInteger, primary_key=True),
    Column("kv_pool", Text, primary_key=True),
    _text("engine"),
    _text("model"),
    _time("ended_at_ms", known=False),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    _text("finish_reason", known=False),
    Column("status", Integer),
    _text("rejected_by", known=False),
    _text("flags"),
    Index("ix_request_rows_blast", "kv_pool", "started_at_ms", "engine", "prompt_tokens", "tenant"),
    Index(None, "started_at_ms"),
    Index(None, "request_id"),
    sqlite_with_rowid=False,
)
"""One row for each request, without its tokens; an absent number is unknown. `flags` is a list of
words. The index `blast` answers the blast radius by itself."""

offsets = Table(
    "offsets",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("next_offset", BigInteger, nullable=False),
)
"""How far each partition has been read; written together with what was read."""

outbox = Table(
    "outbox",
    metadata,
    Column("id", Text, primary_key=True),
    _text("output"),
    _text("incident_id", known=False),
    _count("sequence"),
    _text("kind"),
    _time("created_at_ms"),
    _time("due_at_ms"),
    _count("attempts"),
    _text("state"),
    _text("body"),
    Index(None, "state", "output", "due_at_ms"),
    Index(None, "output", "incident_id", "sequence"),
)
"""What is to be sent: written together with the change it tells of. `id` is its idempotency id;
`sequence` orders what one output gets of one incident; a test alert has no incident."""

journal = Table(
    "journal",
    metadata,
    Column("seq", _NUMBERED, primary_key=True, autoincrement=True),
    _text("notification_id"),
    _text("output"),
    _text("incident_id", known=False),
    _time("at_ms"),
    _text("outcome"),
    _text("answer"),
    _count("duration_ms"),
    Index(None, "output", "seq"),
    Index(None, "notification_id"),
    sqlite_autoincrement=True,
)
"""Every attempt to send, in order; numbers are never used again."""

silences = Table(
    "silences",
    metadata,
    Column("id", Text, primary_key=True),
    _text("matchers"),
    _time("starts_at_ms"),
    _time("ends_at_ms"),
    _text("by"),
    _text("comment"),
)
"""Spans of wall time in which what matches is not sent."""

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    _text("holder"),
    _time("until_ms"),
)
"""Which of several processes does what only one may do."""

holds = Table(
    "holds",
    metadata,
    Column("incident_id", ForeignKey("incidents.id"), primary_key=True),
    Column("kv_pool", Text, primary_key=True),
    Column("from_ms", BigInteger, primary_key=True),
    _time("until_ms"),
)
"""Rows of requests, and the incident itself, that retention must leave alone."""
