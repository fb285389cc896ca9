"""State is plain JSON (I6): no models in channels, no warning, whatever the caller's types."""

import json
import logging
from datetime import date
from enum import Enum
from uuid import UUID

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from graph_retry import aretry_llm_call, create_retry_node, edit, retry_llm_call
from tests.loops import State, answer, reviews, thread


class Tone(Enum):
    """A choice."""

    WARM = "warm"


class Rich(BaseModel):
    """Params with everything that is not JSON."""

    prompt: str
    day: date
    key: UUID
    tone: Tone
    blob: bytes
    messages: list[HumanMessage]


class Person(BaseModel):
    """Typed output."""

    name: str
    born: date


RICH = Rich(
    prompt="Who?",
    day=date(2026, 1, 2),
    key=UUID(int=7),
    tone=Tone.WARM,
    blob=b"\xff\x00",
    messages=[HumanMessage("hi")],
)


def native_parts(value, path="$"):
    """Yield the places of a state that are not JSON."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from native_parts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from native_parts(item, f"{path}[{place}]")
    elif not (value is None or isinstance(value, bool | int | float | str)):
        yield f"{path}: {type(value).__name__}"


@pytest.mark.parametrize("checkpointer", ["sqlite", "postgres"], indirect=True)
def test_rich_types_survive_without_a_trace_in_the_checkpoints(form, mode, checkpointer, caplog):
    """The call gets its types back in every attempt; the database holds JSON and no warning."""
    seen = []

    def call(params):
        seen.append(params)
        return '{"name": "Ada", "born": "1815-12-10"}' if params.prompt == "Ada?" else "no"

    llm_call = mode.colour(call)
    if form == "node":
        node = create_retry_node(llm_call, Rich, output=Person)
    elif mode.is_async:

        async def node(state):
            found = await aretry_llm_call(llm_call, RICH, output=Person)
            return {"output": found.born.isoformat()}
    else:

        def node(state):
            return {"output": retry_llm_call(llm_call, RICH, output=Person).born.isoformat()}

    builder = StateGraph(State)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=checkpointer)
    given = (
        None
        if form == "function"
        else json.loads(
            '{"prompt": "Who?", "day": "2026-01-02", "key": "00000000-0000-0000-0000-000000000007",'
            ' "tone": "warm", "blob": "x", "messages": [{"type": "human", "content": "hi"}]}'
        )
    )
    with caplog.at_level(logging.WARNING, logger="langgraph"):
        mode.invoke(graph, {"params": given}, thread())
        (review,) = reviews(mode, graph, thread())
        state = answer(mode, graph, thread(), edit(prompt="Ada?"))

    assert caplog.records == []
    assert list(native_parts(review.value)) == []
    assert state["output"] in ("1815-12-10", {"name": "Ada", "born": "1815-12-10"})
    for params in seen:
        assert isinstance(params, Rich)
        assert isinstance(params.messages[0], HumanMessage)
    assert seen[1] == seen[0].model_copy(update={"prompt": "Ada?"})
    for saved in mode.call(checkpointer, "list", thread()):
        assert list(native_parts(saved.checkpoint["channel_values"])) == []
