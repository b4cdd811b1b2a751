"""What an API lists findings by, and what looking back has found."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

LISTED_BY = ("rule", "severity", "confidence", "verdict", "sink_tenant")


def upgrade() -> None:
    """Make one table and the indexes of lists."""
    op.create_table(
        "look_backs",
        sa.Column("finding_id", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["finding_id"],
            ["findings.id"],
            name=op.f("fk_look_backs_finding_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("finding_id", name=op.f("pk_look_backs")),
    )
    for name in LISTED_BY:
        columns = [name, "detected_at_ms", "id"]
        op.create_index(op.f(f"ix_findings_{'_'.join(columns)}"), "findings", columns)
