"""Four workers share a queue in PostgreSQL (an empty database, `DATABASE_URL`); one is killed."""

import logging
import os
import signal
import sys
from asyncio import create_subprocess_exec, run
from typing import Any, cast

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.func import entrypoint
from procrastinate import App, PsycopgConnector
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from graph_retry import AttemptContext, aresume, aretry_llm_call, edit
from graph_retry.threads import alist_reviews

logging.getLogger("procrastinate").setLevel("ERROR")  # else: its tasks belong in a module
queue = App(connector=PsycopgConnector())
URL, HOW = os.environ["DATABASE_URL"], {"autocommit": True, "row_factory": dict_row}
pool: Any = AsyncConnectionPool(URL, kwargs=HOW, min_size=1, max_size=4, open=False)


async def count(params: dict[str, Any], context: AttemptContext) -> str:
    """Stand in for a model that is wrong about every second page, and thinks long about page 7."""
    async with pool.connection() as log:
        await log.execute("INSERT INTO calls VALUES (%s)", (context.idempotency_key,))
        if params["page"] == 7:
            await log.execute("SELECT pg_notify('thinking', %s)", (str(os.getpid()),))
            await log.execute("SELECT pg_advisory_lock_shared(7)")
    return str(params["page"]) if params["care"] or params["page"] % 2 else "a few"


@entrypoint()
async def read(page: int) -> int:
    """Read one page."""
    return await aretry_llm_call(count, {"page": page, "care": False}, output=int)


@queue.task
async def work(page: int) -> None:
    """Run a page's thread; run it on if a worker has died with it."""
    config: Any = {"configurable": {"thread_id": str(page)}}
    graph = cast("Any", read.copy(update={"checkpointer": AsyncPostgresSaver(pool)}))
    await aresume(graph, config, start=page)


async def worker() -> None:
    """Run jobs until none is left; jobs, checkpoints and calls share the pool's connections."""
    async with pool, queue.open_async(pool):
        await queue.run_worker_async(wait=False, listen_notify=False)


async def main() -> None:
    """Start the workers, kill one, and go on where they ended."""
    async with pool, queue.open_async(pool), pool.connection() as log:
        graph = cast("Any", read.copy(update={"checkpointer": AsyncPostgresSaver(pool)}))
        await graph.checkpointer.setup()
        await queue.schema_manager.apply_schema_async()
        for sql in "CREATE TABLE calls (key text)", "SELECT pg_advisory_lock(7)", "LISTEN thinking":
            await log.execute(sql)
        await work.batch_defer_async(*(dict[str, Any](page=page) for page in range(20)))
        workers = [await create_subprocess_exec(sys.executable, __file__, "-") for _ in range(4)]
        os.kill(int((await anext(log.notifies())).payload), signal.SIGKILL)
        await log.execute("SELECT pg_advisory_unlock(7)")
        print("workers ended with", sorted([await worker.wait() for worker in workers]))
        for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=0):
            await queue.job_manager.retry_job(job)
        await queue.run_worker_async(wait=False, listen_notify=False)
        totals = [await review.aanswer(edit(care=True)) for review in await alist_reviews(graph)]
        sql = "SELECT count(*) AS calls, count(DISTINCT key) AS keys FROM calls"
        print(len(totals), "answered;", await (await log.execute(sql)).fetchone())


if __name__ == "__main__":
    run(worker() if sys.argv[1:] else main())
# expect: workers ended with [-9, 0, 0, 0]
# expect: 10 answered; {'calls': 31, 'keys': 30}
