"""The first tables of the store."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    _incidents()
    _journal()
    _leases()
    _offsets()
    _outbox()
    _request_rows()
    _silences()
    _findings()
    _findings_indexes()
    _holds()
    _incident_changes()
    _incident_spans()


def _incidents() -> None:
    op.create_table(
        "incidents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Text(), nullable=False),
        sa.Column("kv_pool", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("lead", sa.Text(), nullable=False),
        sa.Column("opened_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("heard_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at_ms", sa.BigInteger()),
        sa.Column("acknowledged_at_ms", sa.BigInteger()),
        sa.Column("acknowledged_by", sa.Text()),
        sa.Column("merged_into", sa.Text()),
        sa.Column("finding_count", sa.Integer(), nullable=False),
        sa.Column("kv_pools", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("tenants", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incidents")),
    )
    op.create_index(op.f("ix_incidents_created_at_ms_id"), "incidents", ["created_at_ms", "id"])
    op.create_index(op.f("ix_incidents_state_heard_at_ms"), "incidents", ["state", "heard_at_ms"])


def _journal() -> None:
    op.create_table(
        "journal",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("notification_id", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("incident_id", sa.Text()),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_journal")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_journal_notification_id"), "journal", ["notification_id"])
    op.create_index(op.f("ix_journal_output_seq"), "journal", ["output", "seq"])


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )


def _offsets() -> None:
    op.create_table(
        "offsets",
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition", name=op.f("pk_offsets")),
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("incident_id", sa.Text()),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        op.f("ix_outbox_output_incident_id_sequence"),
        "outbox",
        ["output", "incident_id", "sequence"],
    )
    op.create_index(
        op.f("ix_outbox_state_output_due_at_ms"), "outbox", ["state", "output", "due_at_ms"]
    )


def _request_rows() -> None:
    op.create_table(
        "request_rows",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kv_pool", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger()),
        sa.Column("prompt_tokens", sa.BigInteger()),
        sa.Column("completion_tokens", sa.BigInteger()),
        sa.Column("finish_reason", sa.Text()),
        sa.Column("status", sa.Integer()),
        sa.Column("rejected_by", sa.Text()),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant", "request_id", "started_at_ms", "kv_pool", name=op.f("pk_request_rows")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_request_rows_blast",
        "request_rows",
        ["kv_pool", "started_at_ms", "engine", "prompt_tokens", "tenant"],
    )
    op.create_index(op.f("ix_request_rows_request_id"), "request_rows", ["request_id"])
    op.create_index(op.f("ix_request_rows_started_at_ms"), "request_rows", ["started_at_ms"])


def _silences() -> None:
    op.create_table(
        "silences",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("matchers", sa.Text(), nullable=False),
        sa.Column("starts_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_silences")),
    )


def _findings() -> None:
    op.create_table(
        "findings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Text(), nullable=False),
        sa.Column("kv_pool", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("observed_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("detected_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("observed_from_ms", sa.BigInteger(), nullable=False),
        sa.Column("observed_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("sink_tenant", sa.Text(), nullable=False),
        sa.Column("sink_request", sa.Text(), nullable=False),
        sa.Column("source_tenant", sa.Text(), nullable=False),
        sa.Column("source_request", sa.Text(), nullable=False),
        sa.Column("incident_id", sa.Text()),
        sa.Column("verdict", sa.Text()),
        sa.Column("verdict_by", sa.Text()),
        sa.Column("verdict_at_ms", sa.BigInteger()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incidents.id"], name=op.f("fk_findings_incident_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_findings")),
    )


def _findings_indexes() -> None:
    op.create_index(op.f("ix_findings_detected_at_ms_id"), "findings", ["detected_at_ms", "id"])
    op.create_index(op.f("ix_findings_incident_id"), "findings", ["incident_id"])
    op.create_index(
        op.f("ix_findings_kv_pool_detected_at_ms_id"),
        "findings",
        ["kv_pool", "detected_at_ms", "id"],
    )
    op.create_index(
        op.f("ix_findings_sink_tenant_sink_request"), "findings", ["sink_tenant", "sink_request"]
    )
    op.create_index(
        op.f("ix_findings_source_tenant_detected_at_ms"),
        "findings",
        ["source_tenant", "detected_at_ms"],
    )


def _holds() -> None:
    op.create_table(
        "holds",
        sa.Column("incident_id", sa.Text(), nullable=False),
        sa.Column("kv_pool", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incidents.id"], name=op.f("fk_holds_incident_id")
        ),
        sa.PrimaryKeyConstraint("incident_id", "kv_pool", "from_ms", name=op.f("pk_holds")),
    )


def _incident_changes() -> None:
    op.create_table(
        "incident_changes",
        sa.Column("incident_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("by", sa.Text()),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incidents.id"], name=op.f("fk_incident_changes_incident_id")
        ),
        sa.PrimaryKeyConstraint("incident_id", "seq", name=op.f("pk_incident_changes")),
    )


def _incident_spans() -> None:
    op.create_table(
        "incident_spans",
        sa.Column("kv_pool", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.Column("incident_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"], ["incidents.id"], name=op.f("fk_incident_spans_incident_id")
        ),
        sa.PrimaryKeyConstraint("kv_pool", "from_ms", name=op.f("pk_incident_spans")),
    )
    op.create_index(op.f("ix_incident_spans_incident_id"), "incident_spans", ["incident_id"])
