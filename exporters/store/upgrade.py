"""Brings the tables of a store up to date; the migrations lie beside, one file each."""

from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from detector.errors import StoreError

MIGRATIONS: Final = "exporters.store:migrations"


def upgrade(connection: Connection, place: str) -> None:
    """Run the migrations that are missing, in the transaction of `connection`: all or none.

    Raises StoreError if the store was written by a newer program; `place` names it.
    """
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise StoreError(
            f"the store is of a newer version (revision {current})",
            where=place,
            hint="use the program that wrote it, or a newer one",
        )
    command.upgrade(config, "head")
