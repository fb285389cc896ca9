"""Four workers share a queue in PostgreSQL; one is killed, and a fifth process answers.

`DATABASE_URL=postgresql://… python examples/several_workers.py`, in an empty database.
"""

import logging
import os
import signal
import sys
from asyncio import create_subprocess_exec, run
from typing import Any, cast

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.func import entrypoint
from procrastinate import App, PsycopgConnector
from psycopg import AsyncConnection

from graph_retry import AttemptContext, aresume, aretry_llm_call, edit
from graph_retry.threads import alist_reviews

DATABASE = os.environ["DATABASE_URL"]
logging.getLogger("procrastinate").setLevel("ERROR")  # else: its tasks belong in a module
queue = App(connector=PsycopgConnector(conninfo=DATABASE))


async def count(params: dict[str, Any], context: AttemptContext) -> str:
    """Stand in for a model that is wrong about every second page, and thinks long about page 7."""
    async with await AsyncConnection.connect(DATABASE, autocommit=True) as log:
        await log.execute("INSERT INTO calls VALUES (%s)", (context.idempotency_key,))
        if params["page"] == 7:
            await log.execute("SELECT pg_notify('thinking', %s)", (str(os.getpid()),))
            await log.execute("SELECT pg_advisory_lock(7)")
    return str(params["page"]) if params["care"] or params["page"] % 2 else "a few"


@entrypoint()
async def read(page: int) -> int:
    """Read one page."""
    return await aretry_llm_call(count, {"page": page, "care": False}, output=int)


@queue.task
async def work(page: int) -> None:
    """Run a page's thread; run it on if a worker has died with it."""
    config: Any = {"configurable": {"thread_id": str(page)}}
    async with AsyncPostgresSaver.from_conn_string(DATABASE) as saver:
        graph = cast("Any", read.copy(update={"checkpointer": saver}))
        await (aresume(graph, config) if await saver.aget(config) else graph.ainvoke(page, config))


async def main() -> None:
    """Start the workers, kill one, and go on where they ended."""
    connected = await AsyncConnection.connect(DATABASE, autocommit=True)
    saving = AsyncPostgresSaver.from_conn_string(DATABASE)
    async with connected as log, saving as saver, queue.open_async():
        await saver.setup()
        await queue.schema_manager.apply_schema_async()
        await log.execute(
            "CREATE TABLE calls (key text); SELECT pg_advisory_lock(7); LISTEN thinking"
        )
        for page in range(20):
            await work.defer_async(page=page)
        command = (sys.executable, __file__, "worker")
        workers = [await create_subprocess_exec(*command) for _ in range(4)]
        os.kill(int((await anext(log.notifies())).payload), signal.SIGKILL)
        await log.execute("SELECT pg_advisory_unlock(7)")
        print("workers ended with", sorted([await worker.wait() for worker in workers]))
        for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=0):
            await queue.job_manager.retry_job(job)
        await queue.run_worker_async(wait=False)
        graph = cast("Any", read.copy(update={"checkpointer": saver}))
        totals = [await review.aanswer(edit(care=True)) for review in await alist_reviews(graph)]
        counted = await log.execute("SELECT count(*), count(DISTINCT key) FROM calls")
        print(len(totals), "answered; calls and different ones:", await counted.fetchone())


if __name__ == "__main__":
    queue.run_worker(wait=False) if sys.argv[1:] else run(main())
# expect: workers ended with [-9, 0, 0, 0]
# expect: 10 answered; calls and different ones: (31, 30)
