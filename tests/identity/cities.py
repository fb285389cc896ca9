"""Calls about cities that start in random order, and whether each got its own result.

A call's result names the city of its params and the city its reviewer meant. So a result at the
wrong place, another call's saved state and an answer to another question all show.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from graph_retry import AnswerRefused, ReplayMismatch, aretry_llm_call, retry_llm_call
from tests.loops import Model, answer, reviews

CITIES = ["Paris", "Rome", "Oslo", "Bern"]
REVIEWED = ["Paris", "Oslo"]
ROUNDS = 8
LONGEST_WAIT_S = 0.01
MOST_ANSWERS = 20
LONGEST_PATIENCE_S = 10


class State(TypedDict, total=False):
    messages: Any
    output: Any


def params_of(city: str, reviewed: Any = REVIEWED) -> dict[str, Any]:
    """Return a call's params; one that is closed needs a person."""
    return {"city": city, "closed": city in reviewed, "note": ""}


def right(cities: Any = CITIES, reviewed: Any = REVIEWED) -> dict[str, str]:
    """Return the right result of each city's call."""
    return {city: tell({"city": city, "note": city if city in reviewed else ""}) for city in cities}


def tell(params: dict[str, Any]) -> str:
    """Say what a model tells of an open city."""
    return f"{params['city']}, opened for {params['note'] or 'everybody'}"


def open_up(params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to the question about these params; it names the city it is meant for."""
    return {"type": "edit", "params": {"closed": False, "note": params["city"]}}


class Guide(Model):
    """A model that tells of a city unless it is closed.

    `returned` gathers the cities whose call has handed its result to the node; `repeated` those
    the model was asked about after that.
    """

    def __init__(self) -> None:
        super().__init__(self._tell)
        self.returned: set[str] = set()
        self.repeated: list[str] = []

    def _tell(self, params: dict[str, Any]) -> str:
        if params["city"] in self.returned:
            self.repeated.append(params["city"])
        if params["closed"]:
            raise ValueError(f"{params['city']} is closed")
        return tell(params)

    def counts(self) -> Counter[str]:
        """Count the model calls of each city."""
        return Counter(params["city"] for params in self.calls)


def right_counts(cities: Any = CITIES, reviewed: Any = REVIEWED) -> Counter[str]:
    """Return how often the model must be called for each city."""
    return Counter({city: 2 if city in reviewed else 1 for city in cities})


class Preparation:
    """What a node does before each call: 0 to 10 ms of it, drawn anew at every entry."""

    def __init__(self, seed: int, guide: Guide, **options: Any) -> None:
        self._seed, self._guide, self._entries = seed, guide, Counter[str]()
        self._options = {"name": "guide", **options}

    def _wait(self, city: str) -> float:
        self._entries[city] += 1
        return random.Random(f"{self._seed} {city} {self._entries[city]}").uniform(
            0, LONGEST_WAIT_S
        )

    def call(self, city: str, reviewed: Any = REVIEWED) -> str:
        """Prepare and make a sync call."""
        time.sleep(self._wait(city))
        result = retry_llm_call(self._guide, params_of(city, reviewed), **self._options)
        self._guide.returned.add(city)
        return result

    async def acall(self, city: str, reviewed: Any = REVIEWED) -> str:
        """Prepare and make an async call."""
        await asyncio.sleep(self._wait(city))
        result = await aretry_llm_call(self._guide, params_of(city, reviewed), **self._options)
        self._guide.returned.add(city)
        return str(result)


def mismatch(run: Callable[[], Any]) -> str | None:
    """Run something; return what a `ReplayMismatch` said, if there was one."""
    try:
        run()
    except ReplayMismatch as error:
        return str(error)
    return None


def seeds(rounds: int = ROUNDS) -> list[int]:
    """Draw other seeds in every run of the tests; a failure tells the seeds that failed."""
    return [random.randrange(2**32) for _ in range(rounds)]


def one_node(node: Any, saver: Any, **options: Any) -> Any:
    """Compile a graph of one node."""
    builder = StateGraph(State).add_node("ask", node, **options)
    return builder.add_edge(START, "ask").compile(checkpointer=saver)


def let_others_end(mode: Any) -> None:
    """Wait for calls that go on after a sibling's pause has ended the run, as a server's do."""

    async def wait() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=LONGEST_PATIENCE_S)

    if mode.is_async:
        mode.run(wait)


def finish(mode: Any, graph: Any, config: Any, way: str) -> list[str]:
    """Open every city that a person is asked about; return the review ids answered, in order.

    `way` is `resume` (our helper, one review at a time), `by id` (LangGraph's map, all at once) or
    `plain` (a bare value for the one question that LangGraph shows).
    """
    answered: list[str] = []
    for _ in range(MOST_ANSWERS):
        let_others_end(mode)
        shown = mode.call(graph, "get_state", config).interrupts
        open_ = reviews(mode, graph, config)
        if not open_:
            return answered
        if way == "resume":
            chosen = open_[:1]
            answers = {open_[0].review_id: open_up(open_[0].params)}
            # Where the city of another call comes first now, this one is asked about again.
            with suppress(AnswerRefused):
                answer(mode, graph, config, answers=answers)
        elif way == "by id":
            chosen = open_
            values = {each.interrupt_id: open_up(each.params) for each in open_}
            mode.invoke(graph, Command(resume=values), config)
        else:
            chosen = open_
            (question,) = shown
            mode.invoke(graph, Command(resume=open_up(question.value["params"])), config)
        answered += [each.review_id for each in chosen]
    raise AssertionError(f"still asked after {MOST_ANSWERS} answers: {open_}")
