"""Lists of incidents in one state find their way without sorting."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make an index."""
    op.create_index(
        op.f("ix_incidents_state_created_at_ms_id"),
        "incidents",
        ["state", "created_at_ms", "id"],
        unique=False,
    )
