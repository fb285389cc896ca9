"""A process whose node iterates over a set of cities, in the order that its hash seed gives.

Usage: python -m tests.identity.set_worker MODE DATABASE STEP

STEP is `start`, or `finish`: answer until nothing is asked. There is a thread for each of
`REVIEWED`; writes as JSON, for each, which cities the model was asked about, the answers given and
the output.
"""

import asyncio
import json
import sys
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import aretry_llm_call, retry_llm_call
from tests.conftest import Mode
from tests.identity.cities import CITIES, Guide, finish, one_node, params_of
from tests.loops import thread

REVIEWED = {"one": ["Rome"], "two": ["Paris", "Oslo"]}
"""The closed cities of each thread."""
GUIDE = Guide()


def ask(params: Any) -> Any:
    """Ask the guide. It logs its calls, so a function that holds it is refused in another order."""
    return GUIDE(params)


def main(mode_name: str, database: str, step: str) -> None:
    """Make the step of each thread and tell what happened."""
    told = {}
    with asyncio.Runner() as runner:
        mode = Mode(mode_name, runner)
        saver_class: Any = AsyncSqliteSaver if mode.is_async else SqliteSaver
        with mode.opened(saver_class.from_conn_string(database)) as saver:
            for name, closed in REVIEWED.items():
                config, answered = thread(name), list[str]()
                graph = one_node(node_of(mode, closed), saver)
                GUIDE.calls.clear()
                if step == "start":
                    mode.invoke(graph, {}, config, durability="sync")
                else:
                    answered = finish(mode, graph, config, "resume")
                output = mode.call(graph, "get_state", config).values.get("output")
                calls = [params["city"] for params in GUIDE.calls]
                told[name] = {"calls": calls, "answered": answered, "output": output}
    sys.stdout.write(json.dumps(told))


def node_of(mode: Mode, closed: list[str]) -> Any:
    """Return a node that makes a call for each city of a set."""

    def node(state: Any) -> Any:
        told = {
            city: retry_llm_call(ask, params_of(city, closed), name="guide") for city in set(CITIES)
        }
        return {"output": told}

    async def anode(state: Any) -> Any:
        told = {
            city: await aretry_llm_call(ask, params_of(city, closed), name="guide")
            for city in set(CITIES)
        }
        return {"output": told}

    return anode if mode.is_async else node


if __name__ == "__main__":
    main(*sys.argv[1:])
