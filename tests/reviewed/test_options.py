"""The options of reviewed nodes: keys, outputs by key, limits, tasks, and mistakes."""

import asyncio
import re
import threading
import typing
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.managed import RemainingSteps
from langgraph.types import Command, RetryPolicy
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import graph_retry
from graph_retry import AnswerRefused, aretry_llm_call, edit, respond, retry_llm_call
from graph_retry.nodes import review_nodes, reviewed
from tests.loops import reviews, thread
from tests.reviewed.nodes import State, waiting


class Person(BaseModel):
    """A person, as a model is asked for one."""

    name: str
    age: int


def alone(mode: Any, node: Any, **options: Any) -> Any:
    """Compile a graph of one reviewed node."""
    builder = StateGraph(State).add_node("ask", mode.colour(node)).add_edge(START, "ask")
    return review_nodes(builder, nodes={"ask": options}).compile(checkpointer=InMemorySaver())


def test_the_text_under_a_key_is_read_and_validated(mode):
    """`output={"person": Person}` repairs and validates one key of the node's update."""

    def ask(state):
        age = ", 'age': 36,}" if "JSON" in state["prompt"] else "}"
        return {"person": "Sure: {'name': 'Ada'" + age, "log": ["asked"]}

    graph = alone(mode, ask, params=["prompt"], output={"person": Person})
    mode.invoke(graph, {"prompt": "x"}, thread())
    review = waiting(mode, graph)[0].value
    assert [one["path"] for one in review["issues"]] == ["/person/age"]

    with pytest.raises(AnswerRefused, match="/person/age"):
        mode.call(graph_retry, "resume", graph, thread(), respond({"person": {"name": "Bo"}}))
    state = mode.call(graph_retry, "resume", graph, thread(), edit(prompt="JSON"))

    assert state["person"] == {"name": "Ada", "age": 36}
    assert state["log"] == ["asked"]


class Typed(TypedDict, total=False):
    """A state that declares a model and messages."""

    prompt: str
    person: Person
    messages: Annotated[list[BaseMessage], add_messages]


@pytest.mark.parametrize("kind", [str, AIMessage])
def test_a_key_of_the_declared_type_gets_the_object(mode, kind):
    """Where the state declares the model itself, the node's update has an object of it."""
    answer = kind('{"name": "Ada", "age": "36"}')
    builder = StateGraph(Typed).add_node("ask", mode.colour(lambda _: {"person": answer}))
    builder.add_edge(START, "ask")
    graph = review_nodes(builder, nodes={"ask": {"output": {"person": Person}}}).compile()

    assert mode.invoke(graph, {"prompt": "x"})["person"] == Person(name="Ada", age=36)


ODD = [("ai", {"tool_calls": [{"name": 1}]}), ("tool", {}), ("odd", {})]


@pytest.mark.parametrize(("kind", "more"), [("ai", {}), *ODD], ids=repr)
def test_a_response_has_the_types_of_the_state(mode, kind, more):
    """The next node gets the objects that an attempt would have returned; odd messages stay."""
    seen = []

    def ask(_state):
        raise ValueError

    builder = StateGraph(Typed).add_node("ask", mode.colour(ask))
    builder.add_node("next", mode.colour(seen.append))
    builder.add_edge(START, "ask").add_edge("ask", "next")
    graph = review_nodes(builder).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"prompt": "x"}, thread())
    message = {"type": kind, "content": "Bo", **more}
    by_hand = {"person": {"name": "Bo", "age": 3}, "messages": [message]}

    mode.call(graph_retry, "resume", graph, thread(), respond(by_hand))

    assert seen[0]["person"] == Person(name="Bo", age=3)
    made = BaseMessage if (kind, more) in ODD else AIMessage
    assert [type(message) for message in seen[0]["messages"]] == [made]


def test_a_command_is_no_update_to_validate(mode):
    """The question says so, because `output=` would lose where the command leads."""
    graph = alone(mode, lambda _: Command(goto=END), output={"person": Person})
    mode.invoke(graph, {"prompt": "x"}, thread())
    assert "returns a `Command`" in waiting(mode, graph)[0].value["error"]


def test_edits_are_checked_by_the_input_model(mode):
    """A pydantic model as the node's input gives the params their types and limits."""

    class Input(BaseModel):
        prompt: str
        n: int = Field(default=1, le=5)

    class Whole(TypedDict, total=False):
        prompt: str
        n: int
        out: str

    seen = []

    def ask(state: Input):
        seen.append((type(state), state.n))
        if state.n < 3:
            message = "too small"
            raise ValueError(message)
        return {"out": "ok"}

    builder = StateGraph(Whole).add_node("ask", mode.colour(ask), input_schema=Input)
    builder.add_edge(START, "ask")
    graph = review_nodes(builder, ["prompt", "n"]).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"prompt": "x", "n": 1}, thread())

    for wrong in (edit(n=99), edit(n="x"), edit(m=3)):
        with pytest.raises(AnswerRefused):
            mode.call(graph_retry, "resume", graph, thread(), wrong)
    state = mode.call(graph_retry, "resume", graph, thread(), edit(n=4))

    assert state["out"] == "ok"
    assert seen == [(Input, 1), (Input, 4)]


def test_by_default_every_key_that_json_can_hold_is_shown(mode):
    """Managed values and objects that JSON cannot hold are no params, and the node gets them."""

    class Managed(TypedDict, total=False):
        prompt: str
        pattern: Any
        left: RemainingSteps

    seen = []

    def ask(state: Managed):
        seen.append((state["pattern"], state["left"] > 0))
        if "JSON" not in state["prompt"]:
            message = "no JSON"
            raise ValueError(message)
        return {}

    builder = StateGraph(Managed).add_node("ask", mode.colour(ask)).add_edge(START, "ask")
    graph = review_nodes(builder).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"prompt": "x", "pattern": re.compile("x")}, thread())
    assert waiting(mode, graph)[0].value["params"] == {"prompt": "x"}

    mode.call(graph_retry, "resume", graph, thread(), edit(prompt="JSON"))
    assert seen == [(re.compile("x"), True)] * 2


def test_a_task_asks_about_its_arguments(mode):
    """The params of a `@task` are its arguments by name, and its limits are those of the call."""
    seen = []

    @reviewed
    @task(retry_policy=RetryPolicy(max_attempts=2, initial_interval=0, jitter=False))
    def extract(prompt: str, n: int = 1) -> str:
        seen.append((prompt, n))
        if n == 0:
            raise ConnectionError
        if n < 2:
            message = "n is too small"
            raise ValueError(message)
        return prompt * n

    @entrypoint(checkpointer=InMemorySaver())
    def flow(text: str) -> str:
        return extract(text).result() + extract("z", n=3).result()

    if mode.is_async:

        @entrypoint(checkpointer=InMemorySaver())
        async def flow(text: str) -> str:
            return await extract(text) + await extract("z", n=3)

    mode.invoke(flow, "a", thread())
    assert waiting(mode, flow)[0].value["params"] == {"prompt": "a", "n": 1}
    with pytest.raises(AnswerRefused, match="n"):
        mode.call(graph_retry, "resume", flow, thread(), edit(n="many"))
    mode.call(graph_retry, "resume", flow, thread(), edit(n=0))
    result = mode.call(graph_retry, "resume", flow, thread(), edit(n=2))

    assert result == "aazzz"
    assert seen == [("a", 1), ("a", 0), ("a", 0), ("a", 2), ("z", 3)]


def test_a_response_in_place_of_a_task_is_its_result(mode):
    """It has the type that the task declares, and is refused if it does not fit."""

    def find(prompt: str) -> Person:
        raise ValueError(prompt)

    made = reviewed(task(mode.colour(find)))

    @entrypoint(checkpointer=InMemorySaver())
    def flow(text: str) -> str:
        return made(text).result().name

    if mode.is_async:

        @entrypoint(checkpointer=InMemorySaver())
        async def flow(text: str) -> str:
            return (await made(text)).name

    mode.invoke(flow, "a", thread())
    for wrong in ({"prompt": "b"}, "Bo", {"name": "Bo"}):
        with pytest.raises(AnswerRefused):
            mode.call(graph_retry, "resume", flow, thread(), respond(wrong))
    answer = respond({"name": "Bo", "age": 3})
    assert mode.call(graph_retry, "resume", flow, thread(), answer) == "Bo"

    with pytest.raises(ValueError, match="`output` is not allowed for a `@task`"):
        reviewed(task(find), output={"name": str})


@pytest.mark.parametrize("catches", [False, True])
def test_a_reviewed_node_that_makes_calls_is_refused(mode, catches):
    """Each attempt of the node would repeat the calls inside it: nothing is called."""
    made = []

    def ask(_state):
        try:
            return {"out": retry_llm_call(made.append, "inner", name="inner")}
        except Exception:
            if not catches:
                raise
            return {"out": "a refusal that the node has caught"}

    async def aask(_state):
        try:
            return {"out": await aretry_llm_call(made.append, "inner", name="inner")}
        except Exception:
            if not catches:
                raise
            return {"out": "a refusal that the node has caught"}

    builder = StateGraph(State).add_node("ask", aask if mode.is_async else ask)
    builder.add_edge(START, "ask")
    graph = review_nodes(builder).compile(checkpointer=InMemorySaver())

    with pytest.raises(TypeError, match=r"`ask` makes a call of its own \(`inner`\)"):
        mode.invoke(graph, {"prompt": "x"}, thread())
    assert made == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda b: review_nodes(b.compile(), ["prompt"]), "compiled graph"),
        (lambda _: review_nodes(StateGraph(dict)), "no nodes yet"),
        (lambda b: review_nodes(b, nodes={"ask": ["prompt"]}), r"`nodes\['ask'\]`: .*NodeOptions"),
        (lambda _: reviewed(["prompt"]), "`node`: give a node"),
        (lambda b: review_nodes(b, nodes=["aks"]), "`nodes` names `aks`"),
        (lambda b: review_nodes(review_nodes(b), nodes=["ask"]), "`ask`, which asks a person"),
        (lambda b: review_nodes(review_nodes(b), max_attempts=3), "only nodes that ask already"),
        (lambda _: reviewed({"n": 3}), "`node`: give a node"),
        (lambda b: review_nodes(b, ["promt"]), "`params` names `promt`"),
        (lambda b: review_nodes(b, "prompt"), "a list of texts"),
        (lambda b: review_nodes(b, nodes={"ask": {"params": ["promt"]}}), "`promt`"),
        (lambda b: review_nodes(b, key="x"), "`key`"),
        (lambda b: review_nodes(b, max_attempts=0), "`max_attempts`"),
        (lambda b: review_nodes(b, output=Person), "`output`: give it by node, as in .*`Person`"),
        (lambda b: review_nodes(b, nodes={"ask": {"output": {"persn": Person}}}), "`persn`"),
        (lambda b: review_nodes(b, nodes={"ask": {"output": Person}}), "a mapping of state keys"),
    ],
)
def test_a_mistake_is_refused_before_the_graph_runs(change, named):
    """A wrong name or option is an error of `review_nodes` itself, and names what is allowed."""
    builder = StateGraph(State).add_node("ask", lambda _: {}).add_edge(START, "ask")

    with pytest.raises(ValueError, match=named):
        change(builder)


def test_several_retry_policies_need_a_word():
    """A call has one policy, so a node with several needs `transient=`."""
    policies = (RetryPolicy(), RetryPolicy(max_attempts=5))
    builder = StateGraph(State).add_node("ask", lambda _: {}, retry_policy=policies)
    builder.add_edge(START, "ask")

    with pytest.raises(ValueError, match="2 retry policies"):
        review_nodes(builder)
    assert review_nodes(builder, transient=RetryPolicy()) is builder


def test_the_timeout_of_a_node_ends_an_attempt():
    """A node's `timeout` becomes that of its call: a slow attempt is a failure to review."""
    seen = []

    async def ask(state):
        seen.append(state["prompt"])
        await asyncio.Event().wait() if "JSON" not in state["prompt"] else None
        return {"out": "ok"}

    builder = StateGraph(State).add_node("ask", ask, timeout=0.05).add_edge(START, "ask")
    graph = review_nodes(builder, ["prompt"]).compile(checkpointer=InMemorySaver())

    async def main() -> Any:
        await graph.ainvoke({"prompt": "x"}, thread())
        [review] = await graph_retry.apending_reviews(graph, thread())
        assert review.value["error"] == "TimeoutError: no result within 0.05 s"
        return await graph_retry.aresume(graph, thread(), edit(prompt="JSON"))

    assert asyncio.run(main())["out"] == "ok"
    assert seen == ["x", "JSON"]


def test_a_key_whose_type_nobody_can_check_takes_any_value(mode):
    """LangGraph checks no state, so a graph runs whatever its annotations are."""

    class Route(typing.TypedDict):  # pydantic refuses it before Python 3.12
        kind: str

    class Routed(TypedDict, total=False):
        prompt: str
        route: Route
        lock: "threading.Lock"

    fails = [True]

    def ask(state):
        if fails.pop() if fails else False:
            raise ValueError
        return {"route": {"kind": state["prompt"]}}

    builder = StateGraph(Routed).add_node("ask", mode.colour(ask)).add_edge(START, "ask")
    graph = review_nodes(builder).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"prompt": "a"}, thread())
    state = mode.call(graph_retry, "resume", graph, thread(), edit(prompt="b"))
    assert state["route"] == {"kind": "b"}


def test_a_dict_where_the_state_declares_a_model_stays_a_dict(mode):
    """A graph does not check its state, so the node sees what it would see without a review."""

    class Typed(TypedDict, total=False):
        person: Person

    seen = []

    def ask(state):
        seen.append(state["person"])
        if len(seen) < 2:
            raise ValueError
        return {}

    builder = StateGraph(Typed).add_node("ask", mode.colour(ask)).add_edge(START, "ask")
    graph = review_nodes(builder).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"person": {"name": "Ada"}}, thread())

    mode.call(graph_retry, "resume", graph, thread(), edit(person={"name": "Bo"}))

    assert seen == [{"name": "Ada"}, {"name": "Bo"}]


def test_the_defaults_of_a_graph_become_those_of_each_call(mode):
    """`set_node_defaults` gives its policy and its timeout to the call, and not to the wrapper."""
    calls = []

    def ask(state):
        calls.append(state["prompt"])
        raise ConnectionError("lost")

    builder = StateGraph(State).add_node("ask", mode.colour(ask)).add_edge(START, "ask")
    builder.set_node_defaults(
        retry_policy=RetryPolicy(max_attempts=3, initial_interval=0, jitter=False),
        timeout=30 if mode.is_async else None,
    )
    graph = review_nodes(builder, ["prompt"]).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"prompt": "a"}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.error == "ConnectionError: lost"
    assert calls == ["a"] * 3
    node = graph.nodes["ask"]
    assert not node.retry_policy
    assert node.timeout is None
