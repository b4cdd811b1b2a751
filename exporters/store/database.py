"""The database of the store: opened by URL, brought up to date, and used in transactions.

Writers take turns on both databases: SQLite locks its file, PostgreSQL an advisory lock. So what a
transaction has read is still true when it writes. Readers never wait for them. None waits for ever:
a writer that stands still in its transaction is given up, and the database ends it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError

from detector.errors import StoreError
from exporters.secret_file import read_lines
from exporters.store.settings import StoreSettings
from exporters.store.upgrade import upgrade

BUSY_S: Final = 30
"""How long a writer waits for its turn: transactions take milliseconds, retention a second."""

WRITERS: Final = 0x626C_6565_6477
"""The number of PostgreSQL's advisory lock that writers take: "bleedw"."""

STALLED_S: Final = 60
"""How long a writer may do nothing inside its transaction before PostgreSQL ends it, so that one
that is frozen does not stop all others: twice what they wait."""

LINK_SETTINGS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
}
"""Parameters of connections to PostgreSQL (seconds, seconds, milliseconds) that the URL does not
set: a server whose host is gone is noticed within a minute or so, not in hours."""

WRITER_LIMITS: Final = {
    "lock_timeout": BUSY_S * 1000,
    "idle_in_transaction_session_timeout": STALLED_S * 1000,
}
"""Settings of a writer's transaction, in milliseconds, unless `options` in the URL names them."""

_WRITES = "bleedwatch_writes"


class Database:
    """One open store, for any thread.

    `read()` and `write()` give a connection for one transaction: it is committed when the block
    ends, and rolled back when an exception leaves it. Both raise StoreError for whatever the
    database says, without values of rows.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._place = _place(engine.url)

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a transaction that sees one state of the store."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a transaction that no other writer runs beside."""
        with self._transaction(writes=True) as connection:
            yield connection

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        try:
            with _transaction(self._engine, writes=writes) as connection:
                yield connection
        except SQLAlchemyError as error:
            raise store_error(error, self._place) from None


def open_store(settings: StoreSettings, *, must_exist: bool = False) -> Database:
    """Open the store and bring its tables up to date; a SQLite file is made if there is none.

    With `must_exist` none is made: who asks what happened must not take an empty store for "nothing
    did". Raises StoreError if the store cannot be opened or is newer than this program, and
    SettingsError for a password file that cannot be used.
    """
    url = make_url(settings.url)
    if url.get_backend_name() == "sqlite":
        if must_exist and not Path(url.database or "").is_file():
            hint = "set store.url to that of `run api`; relative paths start at the working folder"
            raise StoreError("there is no such store", where=_place(url), hint=hint)
        engine = _sqlite(url)
    else:
        engine = _postgresql(url, _password(settings))
    place = _place(url)
    try:
        with _transaction(engine, writes=True) as connection:
            upgrade(connection, place)
    except SQLAlchemyError as error:
        engine.dispose()
        raise store_error(error, place) from None
    except StoreError:
        engine.dispose()
        raise
    return Database(engine)


@contextmanager
def _transaction(engine: Engine, *, writes: bool) -> Iterator[Connection]:
    """A writer's PostgreSQL snapshot must not be older than its turn, so it has one a statement."""
    options: dict[str, Any] = {_WRITES: writes}
    if engine.dialect.name == "postgresql":
        options["isolation_level"] = "READ COMMITTED" if writes else "REPEATABLE READ"
        options["postgresql_readonly"] = not writes
    with engine.connect() as connection, connection.execution_options(**options).begin():
        yield connection


def store_error(error: SQLAlchemyError, place: str) -> StoreError:
    """Return the error without SQL, parameters and values: they name tenants."""
    cause = getattr(error, "orig", None) or error
    kind = type(cause).__name__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    hint = "see that it is there, has room, and that this user may write to it"
    if code in {"SQLITE_CORRUPT", "SQLITE_NOTADB"}:
        hint = "it is damaged or no database: restore it, or move it away and start with a new one"
    if code == "55P03":
        hint = "another process writes for too long: see that none of them stands still"
    return StoreError(
        f"the store cannot be used ({kind}{f', {code}' if code else ''})", where=place, hint=hint
    )


def _password(settings: StoreSettings) -> str | None:
    if settings.password_file is None:
        return None
    return read_lines(settings.password_file, where="store.password_file")[0]


def _place(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_S})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:  # noqa: ANN401 - a DBAPI connection
        # Transactions are ours: the driver would begin them late, and without the lock of a writer.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        # What was told to others must not be forgotten when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL, password: str | None) -> Engine:
    link = {name: value for name, value in LINK_SETTINGS.items() if name not in url.query}
    with_driver = url.set(drivername="postgresql+psycopg").update_query_dict(link)
    engine = create_engine(
        with_driver if password is None else with_driver.set(password=password),
        pool_pre_ping=True,
    )
    take_turn = _take_turn(str(url.query.get("options", "")))

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(_WRITES, False):
            connection.exec_driver_sql(take_turn)

    return engine


def _take_turn(options: str) -> str:
    """Return what a writer says first: how long it waits and may stand still, and that it waits.

    All in one message, and for the transaction alone: a pooler between us and the database may give
    the connection to others afterwards, and refuses settings that come with the connection.
    """
    limits = [
        f"SET LOCAL {name} = {ms}"
        for name, ms in WRITER_LIMITS.items()
        if re.search(rf"\b{name}\b", options) is None
    ]
    return "; ".join([*limits, f"SELECT pg_advisory_xact_lock({WRITERS})"])
