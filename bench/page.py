"""How long a page takes with many reviews waiting: `python -m bench.page [1000 10000]`.

Pages are opened 20 a second, so that some of them meet a look at what is new. `reads` are the
statements and checkpoints that a page reads on average: they do not depend on the machine.
"""

import asyncio
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import BaseModel

from graph_retry import create_retry_node
from graph_retry._core.langgraph.storage.stores import SqlStore
from graph_retry.desk.web import create_app
from tests.postgres_server import running_server

PAGES = 40
NUMBERS = (1_000, 10_000)


class Params(BaseModel):
    """A small call."""

    prompt: str
    model: str = "small"


class Invoice(BaseModel):
    """What it must give."""

    vendor: str
    total: float


def answer(params: Params) -> str:
    """Answer what does not fit."""
    return f'{{"vendor": "{params.prompt}", "total": "EUR 12"}}'


async def fill(graph: Any, start: int, end: int) -> None:
    """Let threads wait, eight at a time."""
    gate = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with gate:
            config = {"configurable": {"thread_id": f"t{number}"}}
            await graph.ainvoke({"params": {"prompt": f"invoice {number}"}}, config)

    await asyncio.gather(*(one(number) for number in range(start, end)))


class Reads:
    """Counts the statements of the table of open reviews, and the checkpoints that are read."""

    def __init__(self, saver: Any) -> None:
        self.number = 0
        self.patches = [
            patch.object(SqlStore, "query", self._counting(SqlStore.query)),
            patch.object(saver, "aget_tuple", self._counting(saver.aget_tuple)),
        ]

    def _counting(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **options: Any) -> Any:
            self.number += 1
            return await function(*args, **options)

        return counted

    async def during(self, pages: Awaitable[list[float]]) -> tuple[list[float], float]:
        """Open pages; return how long they took, and the reads of one on average."""
        before = self.number
        took = await pages
        return took, (self.number - before) / len(took)


async def measure(graph: Any, name: str, number: int) -> None:
    """Open pages as a person would, and print how long they took."""
    app = create_app(graph, authorize=lambda _: "ada")
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
        began = time.perf_counter()
        first = await timed(client, "/")
        while f">{number:,} reviews wait" not in (await client.get("/")).text:
            pass  # a page waits for the reading by itself
        whole = time.perf_counter() - began
        reads = Reads(graph.checkpointer)
        with reads.patches[0], reads.patches[1]:
            lists = [f"/?page={each % 20 + 1}" for each in range(PAGES)]
            inbox, for_list = await reads.during(opened(client, lists))
            links = re.findall(r'href="(/r/\w+)"', (await client.get("/?page=7")).text)[:PAGES]
            reviews, for_review = await reads.during(opened(client, links))
    print(
        f"| {name} | {number:,} | {first:.2f} s | {whole:.1f} s | {p95(inbox):.0f} ms | "
        f"{for_list:.1f} | {p95(reviews):.0f} ms | {for_review:.1f} |",
        flush=True,
    )


async def opened(client: httpx.AsyncClient, addresses: list[str]) -> list[float]:
    """Open pages one after the other, and return how long each took."""
    return [await timed(client, address) for address in addresses]


async def timed(client: httpx.AsyncClient, address: str) -> float:
    """Return how long a page takes, in seconds."""
    await asyncio.sleep(0.05)
    began = time.perf_counter()
    page = await client.get(address)
    took = time.perf_counter() - began
    assert page.status_code == 200, page.text
    return took


def p95(seconds: list[float]) -> float:
    """Return the 95th percentile in milliseconds."""
    return statistics.quantiles(seconds, n=20)[-1] * 1_000


@asynccontextmanager
async def savers() -> AsyncIterator[dict[str, Any]]:
    """Open both storages, empty."""
    with tempfile.TemporaryDirectory() as folder, running_server() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE page")
        file = str(Path(folder) / "page.sqlite")
        async with (
            AsyncSqliteSaver.from_conn_string(file) as sqlite,
            AsyncPostgresSaver.from_conn_string(dsn.replace("/postgres?", "/page?")) as postgres,
        ):
            await postgres.setup()
            yield {"SQLite": sqlite, "PostgreSQL": postgres}


async def main(numbers: tuple[int, ...]) -> None:
    """Print a table."""
    print("| storage | waiting | first page | all read | list, p95 | reads | review, p95 | reads |")
    print("|---|---|---|---|---|---|---|---|")
    node = create_retry_node(answer, Params, output=Invoice, name="read")
    async with savers() as opened:
        for name, saver in opened.items():
            graph, filled = node.copy(update={"checkpointer": saver}), 0
            for number in numbers:
                await fill(graph, filled, number)
                filled = number
                await measure(graph, name, number)


if __name__ == "__main__":
    asyncio.run(main(tuple(map(int, sys.argv[1:])) or NUMBERS))
