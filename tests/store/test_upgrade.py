"""A store of every earlier revision is brought up to date with all that lies in it."""

from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

from exporters.store.database import open_store
from exporters.store.offsets import put_offsets, read_offsets
from exporters.store.settings import StoreSettings
from exporters.store.upgrade import MIGRATIONS


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    return config


def _revisions() -> list[str]:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    return [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]


@pytest.mark.parametrize("revision", _revisions())
def test_what_an_earlier_program_has_stored_is_kept(tmp_path: Path, revision: str) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        command.upgrade(_config(connection), revision)
        put_offsets(connection, {("findings", 3): 41})
        tables = set(inspect(connection).get_table_names())
    engine.dispose()
    with closing(open_store(StoreSettings(url=url))) as database, database.read() as connection:
        assert read_offsets(connection) == {("findings", 3): 41}
        assert tables <= set(inspect(connection).get_table_names())
        now = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    assert now == _revisions()[0], "the newest comes first"
