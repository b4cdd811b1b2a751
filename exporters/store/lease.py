"""A lease in the store: of several processes one at a time holds it, until it ends or is let go.

Instants are those of the processes' clocks: they must agree to within the margin that a holder
leaves before the end of its lease.
"""

from sqlalchemy import Connection, delete, insert, or_, select, update

from exporters.store.tables import leases


def take(connection: Connection, name: str, holder: str, *, now_ms: int, until_ms: int) -> bool:
    """Take or prolong a lease; false while another holds it. Needs a writing transaction."""
    free = or_(leases.c.holder == holder, leases.c.until_ms <= now_ms)
    taken = connection.execute(
        update(leases).where(leases.c.name == name, free).values(holder=holder, until_ms=until_ms)
    )
    if taken.rowcount:
        return True
    if connection.execute(select(leases.c.name).where(leases.c.name == name)).first() is not None:
        return False
    connection.execute(insert(leases).values(name=name, holder=holder, until_ms=until_ms))
    return True


def let_go(connection: Connection, name: str, holder: str) -> None:
    """End a lease if `holder` has it."""
    connection.execute(delete(leases).where(leases.c.name == name, leases.c.holder == holder))
