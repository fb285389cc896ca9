"""The storages of `every_write`, each with copies of what it held at a moment."""

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.langgraph.storage.stores import store_of


class Place:
    """A storage with its copies: files of SQLite, or schemas of PostgreSQL."""

    def __init__(self, store: str, mode: str, durability: str, folder: Path, dsn: str) -> None:
        self.store, self.mode, self.durability = store, mode, durability
        self._folder, self._dsn = folder, dsn
        self._name = f"s{os.getpid()}_{folder.name}"

    def __str__(self) -> str:
        return f"{self.store} {self.mode} {self.durability}"

    @contextmanager
    def opened(self, number: int | None) -> Any:
        """Yield where a copy is, or the first storage of all."""
        if self.store == "sqlite":
            yield str(self._folder / f"{number}.sqlite")
        else:
            yield f"{self._dsn}&options=-csearch_path%3D{self._schema(number)}"

    def begin(self) -> None:
        """Make the first storage."""
        if self.store == "sqlite":
            with SqliteSaver.from_conn_string(str(self._folder / "None.sqlite")) as saver:
                saver.setup()
            return
        self._execute(f"CREATE SCHEMA {self._schema(None)}")
        with self.opened(None) as dsn, PostgresSaver.from_conn_string(dsn) as saver:
            saver.setup()
            run_sync(store_of(saver).prepare())

    def copy(self, number: int) -> None:
        """Copy what is saved now."""
        if self.store == "sqlite":
            paths = (self._folder / f"{each}.sqlite" for each in (None, number))
            source, target = (sqlite3.connect(path, isolation_level=None) for path in paths)
            with closing(source), closing(target):
                target.execute("pragma synchronous = off")
                source.backup(target)
            return
        old, new = self._schema(None), self._schema(number)
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations")
        tables = (*tables, "graph_retry_open_reviews")
        self._execute(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE SCHEMA {new}",
            *(f"CREATE TABLE {new}.{each} (LIKE {old}.{each} INCLUDING ALL)" for each in tables),
            *(f"INSERT INTO {new}.{each} SELECT * FROM {old}.{each}" for each in tables),
            "COMMIT",
        )

    def end(self, number: int | None) -> None:
        """Remove a copy."""
        if self.store == "sqlite":
            for path in self._folder.glob(f"{number}.sqlite*"):
                if path.is_file():
                    path.unlink()
        else:
            self._execute(f"DROP SCHEMA IF EXISTS {self._schema(number)} CASCADE")

    def _schema(self, number: int | None) -> str:
        return f"{self._name}_{number}".lower()

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("; ".join(statements))  # type: ignore[arg-type]
