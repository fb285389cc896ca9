"""A lock of a thread in PostgreSQL, which ends with its connection."""

from typing import Any


class AdvisoryLock:
    """Locks a thread by PostgreSQL's advisory lock on the number `hashtextextended(name, 0)`.

    The lock opens its own connection, because a pool may have no free connection. All schemas of a
    database share the numbers of advisory locks, so `name` includes any schema but `public`.
    """

    def __init__(self, connection: Any, thread_id: str) -> None:
        self._connection, self._thread_id = connection, thread_id

    def try_acquire(self) -> bool:
        """Try once, without waiting; return whether the lock is held now."""
        schema = "coalesce(nullif(current_schema(), 'public') || '/', '')"
        query = f"SELECT pg_try_advisory_lock(hashtextextended(%s || {schema} || %s, 0))"
        named = ("graph_retry:", self._thread_id)
        return bool(self._connection.execute(query, named).fetchone()[0])

    def release(self) -> None:
        """Close the connection, which releases the lock."""
        self._connection.close()
