"""Recipes of the docs that are run twice, or killed and run again."""

import asyncio
import importlib
import sys
from asyncio import create_subprocess_exec

import pytest

from tests.reliability.forking import ROOT, counted

GROUPS = (
    ("night-batch", "any-node", "endpoint"),
    ("fan-out", "migrate", "notify", "live"),
    ("tools", "upgrades", "leaving"),
)


def test_every_recipe_is_played():
    """A page with a program is in one of the groups, or needs a database server."""
    texts = {page.stem: page.read_text() for page in (ROOT / "docs" / "howto").glob("*.md")}
    pages = {name for name, text in texts.items() if "```python" in text}

    assert pages == {page for group in GROUPS for page in group} | {"several-workers"}


@pytest.mark.slow
@pytest.mark.parametrize("pages", GROUPS, ids=lambda pages: pages[0])
def test_a_recipe_that_is_killed_and_run_again_pays_once(pages):
    """Run twice, or killed by SIGKILL and run again: no call is paid twice, no review is ended."""
    found = counted("recipes", ",".join(pages), "2")

    assert {page: told["wrong"] for page, told in found.items() if told["wrong"]} == {}
    assert all(told["calls"] and told["killed"] >= 3 for told in found.values())


WORKER = "import asyncio, examples.several_workers as it; asyncio.run(it.worker())"


@pytest.mark.slow
def test_workers_that_are_killed_twice_and_get_each_job_twice_pay_once(
    monkeypatch, postgres_database
):
    """Of twenty pages each is paid once, but for the call that each killed worker had in flight."""
    monkeypatch.setenv("DATABASE_URL", postgres_database)
    recipe = importlib.import_module("examples.several_workers")

    async def batch():
        jobs = [{"page": page} for page in range(20)]
        pool, queue = recipe.pool, recipe.queue
        async with pool, queue.open_async(pool), pool.connection() as log:

            async def calls():
                counted = await log.execute("SELECT count(*) c, count(DISTINCT key) k FROM calls")
                return await counted.fetchone()

            await recipe.AsyncPostgresSaver(pool).setup()
            await queue.schema_manager.apply_schema_async()
            await log.execute("CREATE TABLE calls (key text)")
            await recipe.work.batch_defer_async(*jobs)
            for paid in (3, 9):
                worker = await create_subprocess_exec(sys.executable, "-c", WORKER)
                while worker.returncode is None and (await calls())["c"] < paid:
                    pass
                worker.kill()
                assert await worker.wait() == -9
            await recipe.work.batch_defer_async(*jobs)
            for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=0):
                await queue.job_manager.retry_job(job)
            await queue.run_worker_async(wait=False, listen_notify=False)
            saver = recipe.AsyncPostgresSaver(pool)
            graph = recipe.read.copy(update={"checkpointer": saver})
            return await calls(), len(await recipe.alist_reviews(graph))

    made, waiting = asyncio.run(batch())
    assert (made["k"], waiting) == (20, 10)
    assert made["c"] <= 22
