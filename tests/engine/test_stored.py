"""Outputs that nobody declares: plain JSON in state, and what they were when they come out."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, ConfigDict

from graph_retry import Completion, retry_llm_call
from graph_retry._core.loop.outcome import restore_value, store
from tests.loops import Model, State, one_call, thread


class Tone(Enum):
    WARM = "warm"


class Person(BaseModel):
    name: str
    born: date | None = None
    tone: Tone = Tone.WARM


class Exact(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    at: datetime
    more: Any = None


@dataclass(frozen=True)
class Point:
    x: float
    owner: Person | None = None


NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)
ADA = Person(name="Ada", born=date(1815, 12, 10))
STORED: dict[str, Any] = {
    "model": ADA,
    "dataclass": Point(1.0, ADA),
    "enum": Tone.WARM,
    "completion": Completion("hi", usage={"total_tokens": 1}),
    "list": [ADA, Point(2.0)],
    "with raw": {"raw": AIMessage("hi"), "parsed": ADA, "parsing_error": None},
    "strict": Exact(at=NOW, more=(1, {2})),
    "plain kinds": {"at": NOW, "ids": {1}, "sum": Decimal("1.10"), "blob": b"\xff", "n": 2**70},
}


@pytest.mark.parametrize("kind", STORED)
def test_an_output_is_json_in_state_and_comes_back_as_what_it_was(kind: str) -> None:
    """Models, dataclasses and enums are found again by name, wherever in the output they stand."""
    stored = store(STORED[kind])
    assert stored is not None
    view, types = json.loads(json.dumps(stored, allow_nan=False))
    again = restore_value(view["value"], types)
    assert type(again) is type(STORED[kind])
    assert again == STORED[kind]


def test_a_later_run_gets_the_object_that_the_call_returned() -> None:
    """A node that fails after its call gets a model again, and the call is not made again."""
    model, outputs = Model(lambda params: ADA), list[Any]()

    def node(state: Any) -> Any:
        outputs.append(retry_llm_call(model, {"n": 1}))
        if len(outputs) == 1:
            raise RuntimeError("after the call")
        return {"output": "done"}

    builder = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="after the call"):
        graph.invoke({}, thread())
    graph.invoke(None, thread())
    assert outputs == [ADA, ADA]
    assert len(model.calls) == 1


def test_a_node_writes_plain_json(mode: Any, checkpointer: Any) -> None:
    """What nobody declared stands in the graph's state as JSON that any client can read."""
    graph = one_call("node", mode, Model(lambda params: [ADA]), checkpointer, output=None)
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    state = mode.call(graph, "get_state", thread()).values
    assert state["output"] == [{"name": "Ada", "born": "1815-12-10", "tone": "warm"}]


class Client:
    """No value."""


@pytest.mark.parametrize("value", [Client(), {"client": Client()}, {1: 2}, Tone])
def test_what_has_no_json_form_is_left_to_langgraph(value: Any) -> None:
    """Its serializer takes some of it, and the call step judges the rest."""
    assert store(value) is None


FOREIGN = [
    "antigravity:geohash", "os:system", "subprocess:Popen", "builtins:eval", "builtins:int", ":",
    "json:JSONDecoder.decode", "no_such_module:Thing", f"{__name__}:Person.model_validate",
]  # fmt: skip


@pytest.mark.parametrize("tag", FOREIGN)
def test_state_imports_nothing(tag: str) -> None:
    """A class is looked up among imported modules only, and only models, dataclasses and enums."""
    with pytest.raises(ValueError, match=r"no longer what the call returned.*\n.*/value"):
        restore_value("1", {"/value": tag})
