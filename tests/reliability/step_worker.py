"""A process to kill: makes one step of a thread on SQLite, and may kill itself on the way.

Usage: python -m tests.reliability.step_worker FORM DATABASE LOG STEP [MOMENT]

STEP is `start`, `climb` (start, with hooks and a reviewer that get there without a person),
`go-on` (answers what is asked to the end), `go-on-climbing`, `edit:N` or `lessons` (writes those
learned so far; node form); `stream` and `go-on-streaming` are `start` and `go-on` with answers that
stream. MOMENT is `call:N` (in the call with `n=N`), `piece:N` (between two pieces of its stream),
`hook:N` (in the hook after that call) or `written` (after the answer is saved, before it is
applied). Every model call appends `n key` to LOG, every hook and reviewer `who n` to LOG.others.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from graph_retry import (
    AttemptContext,
    create_retry_node,
    edit,
    pending_reviews,
    resume,
    retry_llm_call,
)
from graph_retry.hooks import Lessons, Review
from tests.loops import State, thread

GOAL = 3
DYING: list[str] = []
CLIMBING: list[bool] = []
"""What differs between two processes: a call is told apart by what its function holds."""


def die_at(here: str) -> None:
    """Kill this process if it is to die here."""
    if here in DYING:
        os.kill(os.getpid(), signal.SIGKILL)


def main(form: str, database: str, log: str, step: str, moment: str = "") -> None:  # noqa: C901
    """Make the step, or die at the moment."""
    DYING[:] = [moment]

    def model(params: dict[str, Any], context: AttemptContext) -> str:
        with Path(log).open("a") as lines:
            lines.write(f"{params['n']} {context.idempotency_key}\n")
        die_at(f"call:{params['n']}")
        # No two failures in a row are equal: those go to a person at once.
        wrong = "not yet" if params["n"] % 2 == 0 else '{"n": "some"}'
        return f'{{"n": {params["n"]}}}' if params["n"] >= GOAL else wrong

    def stream(params: dict[str, Any], context: AttemptContext) -> Iterator[str]:
        answer = model(params, context)
        yield answer[:4]
        die_at(f"piece:{params['n']}")
        yield answer[4:]

    def note(who: str, n: int) -> None:
        with Path(f"{log}.others").open("a") as lines:
            lines.write(f"{who} {n}\n")

    def hook(error: Exception, attempt: int, params: dict[str, Any]) -> Any:
        die_at(f"hook:{params['n']}")
        note("hook", params["n"])
        return {"n": params["n"] + 1} if CLIMBING and params["n"] < 1 else None

    def reviewer(review: Review) -> Any:
        note("reviewer", review.params["n"])
        return edit(n=review.params["n"] + 1)

    climbing = step in ("climb", "go-on-climbing", "lessons")
    CLIMBING[:] = [climbing] * climbing
    llm_call = stream if step in ("stream", "go-on-streaming") else model
    options: Any = {"output": dict[str, int], "name": "count"}
    if climbing:
        options |= {"auto_retries": 5, "reviewer": reviewer, "lessons": Lessons()}

    def node(state: State) -> State:
        return {"output": retry_llm_call(llm_call, state["params"], hook, **options)}

    builder = StateGraph(State)
    made: Any = create_retry_node(llm_call, dict, hook, **options) if form == "node" else node
    builder.add_node("ask", made)
    builder.add_edge(START, "ask")
    with SqliteSaver.from_conn_string(database) as saver:
        graph = builder.compile(checkpointer=saver)
        if step in ("start", "climb", "stream"):
            graph.invoke({"params": {"n": 0}}, thread(), durability="sync")
        elif step == "lessons":
            (task,) = graph.get_state(thread(), subgraphs=True).tasks
            sys.stdout.write(str([lesson["text"] for lesson in task.state.values["lessons"]]))  # type: ignore[union-attr]
        elif step.startswith("go-on"):
            resume(graph, thread(), durability="sync")
            while not climbing and (open_ := pending_reviews(graph, thread())):
                resume(graph, thread(), edit(n=open_[0].attempt), durability="sync")
        else:
            if moment == "written":
                invoke = graph.invoke
                graph.invoke = lambda *args, **kwargs: (die_at("written"), invoke(*args, **kwargs))  # type: ignore[method-assign]
            resume(graph, thread(), edit(n=int(step.removeprefix("edit:"))), durability="sync")


if __name__ == "__main__":
    main(*sys.argv[1:])
