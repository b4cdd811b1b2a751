"""Stores for tests: the same test on SQLite and on a real PostgreSQL, each time empty."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete

from exporters.store.database import Database, open_store
from exporters.store.settings import StoreSettings
from exporters.store.tables import metadata
from tests.services.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres_store(postgres: PostgresServer) -> StoreSettings:
    """Give the settings of a PostgreSQL store; what is in it is anybody's."""
    return StoreSettings(url=postgres.new_database(), password_file=str(postgres.password_file))


@pytest.fixture(scope="session")
def postgres_database(postgres_store: StoreSettings) -> Iterator[Database]:
    """Give that store, open."""
    with closing(open_store(postgres_store)) as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql"])
def store_settings(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSettings:
    """Give the settings of an empty store, one after the other of both kinds."""
    if request.param == "sqlite":
        return StoreSettings(url=f"sqlite:///{tmp_path}/store.db")
    empty(request.getfixturevalue("postgres_database"))
    settings: StoreSettings = request.getfixturevalue("postgres_store")
    return settings


@pytest.fixture
def database(request: pytest.FixtureRequest, store_settings: StoreSettings) -> Iterator[Database]:
    """Give an open, empty store."""
    if store_settings.url.startswith("postgresql:"):
        yield request.getfixturevalue("postgres_database")
        return
    with closing(open_store(store_settings)) as database:
        yield database


@pytest.fixture(scope="module")
def new_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Database]]:
    """Give what empties and returns a SQLite store that the examples of a property share."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    with closing(open_store(StoreSettings(url=f"sqlite:///{path}"))) as database:

        def emptied() -> Database:
            empty(database)
            return database

        yield emptied


def empty(database: Database) -> None:
    """Remove every row."""
    with database.write() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
