"""The store opens, is brought up to date, keeps transactions apart, and says what fails."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pydantic import ValidationError
from sqlalchemy import text

from detector.errors import SettingsError, StoreError
from exporters.store.database import Database, open_store
from exporters.store.offsets import put_offsets, read_offsets
from exporters.store.settings import StoreSettings
from exporters.store.tables import metadata
from tests.services.postgres import PASSWORD, PostgresServer


def test_migrations_make_the_tables_that_the_code_has(database: Database) -> None:
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_what_is_committed_is_there_after_opening_again(store_settings: StoreSettings) -> None:
    with closing(open_store(store_settings)) as database, database.write() as connection:
        put_offsets(connection, {("t", 0): 7})
    with closing(open_store(store_settings)) as database, database.read() as connection:
        assert read_offsets(connection) == {("t", 0): 7}


class _Stop(Exception):  # noqa: N818 - not an error
    pass


def test_an_exception_leaves_nothing_behind(database: Database) -> None:
    def fails() -> None:
        with database.write() as connection:
            put_offsets(connection, {("t", 0): 7})
            raise _Stop

    with pytest.raises(_Stop):
        fails()
    with database.read() as connection:
        assert read_offsets(connection) == {}


def test_writers_take_turns(database: Database) -> None:
    """Each adds one to what it has read: none is lost."""

    def add() -> None:
        for _ in range(5):
            with database.write() as connection:
                known = read_offsets(connection).get(("t", 0), 0)
                put_offsets(connection, {("t", 0): known + 1})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as connection:
        assert read_offsets(connection) == {("t", 0): 20}


def test_a_reader_neither_waits_nor_sees_half_of_it(database: Database) -> None:
    with database.write() as connection:
        put_offsets(connection, {("t", 0): 1})
        with database.read() as other:
            assert read_offsets(other) == {}


def test_a_writer_that_stands_still_is_given_up_and_ended(
    postgres_store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"lock_timeout": 200, "idle_in_transaction_session_timeout": 1_000}
    monkeypatch.setattr("exporters.store.database.WRITER_LIMITS", limits)

    def stands_still(database: Database) -> None:
        with database.write() as connection:
            connection.execute(text("SELECT 1"))
            with pytest.raises(StoreError, match="another process writes for too long"):
                write(database)
            while not wrote(database):
                pass

    with closing(open_store(postgres_store)) as database:
        with pytest.raises(StoreError):
            stands_still(database)
        write(database)


def write(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("SELECT 1"))


def wrote(database: Database) -> bool:
    try:
        write(database)
    except StoreError:
        return False
    return True


@pytest.mark.parametrize(
    ("query", "lock", "idle"),
    [
        ("", "30s", "1min"),
        ("?connect_timeout=3&options=-c%20deadlock_timeout%3D2s", "30s", "1min"),
        ("?options=-c%20lock_timeout%3D7s", "7s", "1min"),
        ("?options=-c%20idle_in_transaction_session_timeout%3D5s", "30s", "5s"),
    ],
)
def test_what_the_url_sets_of_limits_holds(
    postgres_store: StoreSettings, query: str, lock: str, idle: str
) -> None:
    settings = postgres_store.model_copy(update={"url": postgres_store.url + query})
    with closing(open_store(settings)) as database, database.write() as connection:
        assert connection.scalar(text("SHOW lock_timeout")) == lock
        shown = connection.scalar(text("SHOW idle_in_transaction_session_timeout"))
        assert shown == idle
        info = connection.connection.driver_connection.info  # type: ignore[union-attr]
        told = info.get_parameters()
    assert told["connect_timeout"] == ("3" if "connect_timeout" in query else "10")
    assert (told["keepalives_idle"], told["tcp_user_timeout"]) == ("30", "30000")


@pytest.fixture
def newer(store_settings: StoreSettings) -> Iterator[StoreSettings]:
    """Give a store that says it was written by a newer program; it is itself again afterwards."""
    with closing(open_store(store_settings)) as database:
        set_version = "UPDATE alembic_version SET version_num = "
        with database.read() as connection:
            known = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        with database.write() as connection:
            connection.execute(text(f"{set_version}'9999'"))
        yield store_settings
        with database.write() as connection:
            connection.execute(text(f"{set_version}'{known}'"))


def test_a_newer_store_is_left_alone(newer: StoreSettings) -> None:
    with pytest.raises(StoreError, match="of a newer version"):
        open_store(newer)


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(StoreSettings(url=f"sqlite:///{tmp_path}/no/such/store.db"))
    assert "no/such/store.db" in caught.value.where


def test_a_password_is_read_from_its_file_and_never_shown(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-password\n")
    wrong.chmod(0o600)
    with pytest.raises(StoreError) as caught:
        open_store(StoreSettings(url=postgres.url("postgres"), password_file=str(wrong)))
    assert "not-the-password" not in str(caught.value)
    wrong.chmod(0o604)
    with pytest.raises(SettingsError, match="others may use the file"):
        open_store(StoreSettings(url=postgres.url("postgres"), password_file=str(wrong)))


def test_errors_show_no_values_of_rows(database: Database) -> None:
    def twice() -> None:
        with database.write() as connection:
            for _ in range(2):
                connection.execute(
                    text("INSERT INTO leases (name, holder, until_ms) VALUES ('canary', 'c', 1)")
                )

    with pytest.raises(StoreError) as caught:
        twice()
    assert "canary" not in str(caught.value)
    assert "IntegrityError" in str(caught.value) or "UniqueViolation" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("mysql://db/x", "must begin with"),
        (f"postgresql://me:{PASSWORD}@db/x", "must not hold a password"),
        (f"postgresql://me@db/x?password={PASSWORD}", "must not hold a password"),
        ("sqlite://store.db", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("postgresql://[", "must be a URL"),
    ],
)
def test_a_url_that_nobody_can_open_is_refused(url: str, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        StoreSettings(url=url)


def test_a_password_file_needs_postgresql() -> None:
    with pytest.raises(ValidationError, match="goes with a postgresql"):
        StoreSettings(password_file="/run/secrets/db")
