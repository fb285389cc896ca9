"""Random programs that a new version replaces while they wait: every result is its own call's."""

import contextvars
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AnswerRefused, aretry_llm_call, gather_calls, retry_llm_call
from tests.identity.cities import one_node, seeds
from tests.loops import Model, answer, reviews, thread

CITIES = ["Paris", "Rome", "Oslo", "Bern", "Riga", "Cork"]
NAMES = {city: ["guide", "price"][number % 2] for number, city in enumerate(CITIES)}
CLOSED = {"Paris", "Oslo", "Cork"}
PROGRAMS = 6
MOST_ANSWERS = 30


class Call(NamedTuple):
    """A call in a program; its `stamp` is what a new version of the program may change."""

    name: str
    city: str
    stamp: int = 0


Program = list[list[Call]]
"""Groups of calls: one after the other, the calls of a group at the same time."""


def ask(params: Any) -> str:
    """Tell of an open city: for whom it was opened, and the stamp of the params."""
    if params["city"] in CLOSED and not params["note"]:
        raise ValueError("closed")
    return f"{params['city']} {params['stamp']} for {params['note']}"


def drawn(draw: random.Random) -> Program:
    """Draw a program whose calls are each about another city."""
    calls = [Call(NAMES[city], city) for city in draw.sample(CITIES, draw.randint(2, 5))]
    return grouped(draw, calls)


def grouped(draw: random.Random, calls: list[Call]) -> Program:
    """Draw which neighbouring calls are made at the same time."""
    program: Program = []
    for call in calls:
        if program and draw.random() < 0.3:
            program[-1].append(call)
        else:
            program.append([call])
    return program


def changed(draw: random.Random, program: Program) -> Program:
    """Draw another version: calls inserted, removed, in another order, with other params."""
    calls = [call for group in program for call in group]
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(calls))
        what = draw.choice(["insert", "remove", "reorder", "change"])
        free = [city for city in CITIES if city not in {call.city for call in calls}]
        if what == "insert" and free:
            calls.insert(place, Call(NAMES[city := draw.choice(free)], city))
        elif what == "remove" and len(calls) > 1:
            calls.pop(place)
        elif what == "reorder":
            draw.shuffle(calls)
        else:
            calls[place] = calls[place]._replace(stamp=calls[place].stamp + 1)
    return grouped(draw, calls)


def node_of(mode: Any, model: Any, program: Program, *, keyed: bool) -> Any:
    """Return a node that runs a program; its output has each call's result, by city."""

    def given(call: Call) -> tuple[Any, dict[str, Any]]:
        params = {"city": call.city, "stamp": call.stamp, "note": ""}
        return (model, params), {"name": call.name, **({"key": call.city} if keyed else {})}

    def make(call: Call) -> str:
        arguments, options = given(call)
        return str(retry_llm_call(*arguments, **options))

    async def amake(call: Call) -> str:
        arguments, options = given(call)
        return str(await aretry_llm_call(*arguments, **options))

    def node(state: Any) -> Any:
        told: list[str] = []
        for group in program:
            with ThreadPoolExecutor(len(group)) as pool:
                running = [
                    pool.submit(contextvars.copy_context().run, make, call) for call in group
                ]
            told += [each.result() for each in running]
        return {"output": told}

    async def anode(state: Any) -> Any:
        told: list[str] = []
        for group in program:
            told += await gather_calls(*map(amake, group))
        return {"output": told}

    return anode if mode.is_async else node


def right(call: Call, result: str, *, keyed: bool) -> bool:
    """Tell whether a result is this call's; with a key its first params count, if it was saved."""
    stamps = range(call.stamp + 1) if keyed else [call.stamp]
    note = call.city if call.city in CLOSED else ""
    return result in [f"{call.city} {stamp} for {note}" for stamp in stamps]


def finish(mode: Any, graph: Any) -> list[str]:
    """Answer every question for the city it is about; return the cities of the questions."""
    asked: list[str] = []
    for _ in range(MOST_ANSWERS):
        open_ = reviews(mode, graph, thread())
        if not open_:
            return asked
        asked += [each.params["city"] for each in open_]
        answers = {
            each.review_id: {"type": "edit", "params": {"note": each.params["city"]}}
            for each in open_
        }
        with suppress(AnswerRefused):
            answer(mode, graph, thread(), answers=answers)
    raise AssertionError(f"still asked after {MOST_ANSWERS} answers")


@pytest.mark.parametrize("keyed", [False, True], ids=["params", "key"])
def test_every_result_is_its_own_calls(mode, keyed):
    """Whatever changed: no other result, no call paid twice, and with `key=` no question twice."""
    for seed in seeds(PROGRAMS):
        draw, model = random.Random(seed), Model(ask)
        old = drawn(draw)
        new = changed(draw, old)
        saver = InMemorySaver()
        graph = one_node(node_of(mode, model, old, keyed=keyed), saver)
        mode.invoke(graph, {}, thread())
        waited = bool(reviews(mode, graph, thread()))
        if waited:
            graph = one_node(node_of(mode, model, new, keyed=keyed), saver)
        asked = finish(mode, graph)
        state = mode.call(graph, "get_state", thread())
        if state.next:  # an answer was kept for a call that is not made any more
            mode.invoke(graph, None, thread())
            state = mode.call(graph, "get_state", thread())

        calls = [call for group in (new if waited else old) for call in group]
        told = state.values["output"]
        assert len(told) == len(calls), seed
        wrong = [
            (call, result)
            for call, result in zip(calls, told, strict=True)
            if not right(call, result, keyed=keyed)
        ]
        assert wrong == [], seed
        paid = Counter((each["city"], each["stamp"], each["note"]) for each in model.calls)
        assert set(paid.values()) <= {1}, (seed, paid)
        if keyed:
            assert set(Counter(asked).values()) <= {1}, (seed, asked)
