"""Start the office's jobs, and show what waits in a browser: `make web`.

The threads are kept in `.demo/`, so that the next start goes on with what is left.
"""

import asyncio
import sys
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from examples.reviews.office import JOBS, graph


async def start(path: Path) -> None:
    """Start the jobs that were not started before; each stops where somebody is needed."""
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        office = graph.compile(checkpointer=saver)
        for name, job in JOBS.items():
            config: RunnableConfig = {"configurable": {"thread_id": name}}
            if not (await office.aget_state(config)).created_at:
                await office.ainvoke(job, config, durability="sync")


def main() -> None:
    """Start the jobs and the page, with the options of `graph-retry web`."""
    from graph_retry.desk.cli.app import app  # noqa: PLC0415 - the command, after the jobs' own imports

    path = Path(".demo") / "reviews.sqlite"
    path.parent.mkdir(exist_ok=True)
    asyncio.run(start(path))
    options = ["--db", str(path), "--graph", "examples.reviews.office:graph", *sys.argv[1:]]
    app(["web", *options], prog_name="graph-retry")


if __name__ == "__main__":
    main()
