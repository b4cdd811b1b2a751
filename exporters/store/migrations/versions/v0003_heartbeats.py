"""Heartbeats that have arrived, and the keyed digests of what findings rest on."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make two tables."""
    op.create_table(
        "heartbeats",
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("sent_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sender", name=op.f("pk_heartbeats")),
    )
    op.create_table(
        "finding_digests",
        sa.Column("finding_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("shingles", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["finding_id"],
            ["findings.id"],
            name=op.f("fk_finding_digests_finding_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("finding_id", name=op.f("pk_finding_digests")),
    )
