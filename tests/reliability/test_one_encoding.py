"""The params of a call are encoded once, and what is saved of them is the truth from then on."""

import operator
import uuid
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy
from pydantic import AfterValidator, BaseModel, Field

from graph_retry import AttemptContext, create_retry_node, edit, resume, retry_llm_call
from graph_retry._core.params import codec
from graph_retry.hooks import Lessons
from tests.loops import Model, State, one_call, thread


class Crash(BaseException):
    """What ends a process from inside, as Ctrl-C does."""


class Made(BaseModel):
    """Params that are other ones each time they are made."""

    prompt: str = "hi"
    id: uuid.UUID = Field(default_factory=uuid.uuid4)
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))


class Other(BaseModel):
    """Params whose JSON is not what they were given as."""

    number: float = Field(alias="No")
    word: Annotated[str, AfterValidator(str.lower)]
    ids: tuple[int, ...]


GIVEN = {
    "factory": (Made, {}),
    "alias, float, validator, tuple": (Other, {"No": 1, "word": "Hi", "ids": [1, 2]}),
    "set, tuple": (dict, {"ids": {3, 1, 2}, "pair": (1, [2])}),
    "message": (dict, {"messages": [HumanMessage("hi")]}),
}


def dying(seen):
    """Make a model that notes what it is called with, and whose first call ends the process."""

    def model(params: Any, context: AttemptContext) -> str:
        seen.append((params, context.idempotency_key))
        if len(seen) == 1:
            raise Crash
        return "1"

    return model


@pytest.mark.parametrize("lessons", [None, Lessons()])
@pytest.mark.parametrize("given", GIVEN)
def test_a_node_that_is_cut_off_repeats_its_call_with_the_same_params_and_key(given, lessons):
    """Its first checkpoint holds them encoded, with their types and the call's identity."""
    seen: list[Any] = []
    params_type, params = GIVEN[given]
    options: Any = {"output": int, "lessons": lessons}
    node = create_retry_node(dying(seen), params_type, **options)
    graph = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(Crash):
        graph.invoke({"params": params}, thread())
    (task,) = graph.get_state(thread(), subgraphs=True).tasks
    saved = task.state.values

    assert graph.invoke(None, thread())["output"] == 1

    assert seen[0] == seen[1]
    assert saved["retry_loop"]["identity"]
    again = codec.ParamsCodec(params_type).decode(saved["params"], saved["retry_loop"]["types"])
    assert again == seen[0][0]


@pytest.mark.parametrize("given", GIVEN)
def test_a_node_called_by_hand_keeps_the_params_that_were_saved(given):
    """It is known by what it is given, whatever the params type fills in."""
    seen: list[Any] = []
    params_type, params = GIVEN[given]
    node = create_retry_node(dying(seen), params_type, output=int)

    def ask(_: State) -> Any:
        return {"output": node.invoke({"params": params})["output"]}

    graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(Crash):
        graph.invoke({}, thread())

    assert graph.invoke(None, thread())["output"] == 1
    assert seen[0] == seen[1]


class Around(BaseModel):
    """A parent's state as a model."""

    params: Any = None
    output: Any = None
    status: str | None = None


def test_a_retry_node_fits_a_graph_whose_state_is_a_model():
    """LangGraph hands it the model, not a dict."""
    node = create_retry_node(lambda params: params["n"], dict, output=int)
    graph = StateGraph(Around).add_node("ask", node).add_edge(START, "ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    assert graph.invoke({"params": {"n": "3"}}, thread())["output"] == 3


@pytest.mark.parametrize("schema", ["get_input_jsonschema", "get_input_schema"])
def test_users_see_their_own_input_keys_only(schema):
    """What the loop adds to its input is in no form that a client shows."""
    shown = getattr(create_retry_node(str, dict, output=int), schema)()
    shown = shown if isinstance(shown, dict) else shown.model_json_schema()
    assert "retry_loop" not in str(shown)


class Counted(BaseModel):
    """Typed params."""

    prompt: str
    when: datetime = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("form", ["node", "function"])
@pytest.mark.parametrize("answered", [False, True])
def test_params_are_encoded_and_built_once_before_the_model_sees_them(monkeypatch, form, answered):
    """One value is built to see that nothing is lost, and that one is handed to the model."""
    built: list[Any] = []
    validate = codec.validate
    monkeypatch.setattr(
        codec, "validate", lambda *given, **how: built.append(given) or validate(*given, **how)
    )

    def model(params: Counted) -> str:
        before_the_model.append(len(built))
        return params.prompt

    before_the_model: list[int] = []
    node: Any = create_retry_node(model, Counted, output=int)
    if form == "function":

        def node(state: State) -> Any:
            return {"output": retry_llm_call(model, Counted(**state["params"]), output=int)}

    graph = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    graph.invoke({"params": Counted(prompt="many").model_dump(mode="json")}, thread())
    if answered:
        built.clear()
        resume(graph, thread(), edit(prompt="3"))
    # A function makes its params anew in each run, to be known by them.
    assert before_the_model[-1] == (2 if answered and form == "function" else 1)


class Results(State, total=False):
    """A state with a value to change from outside."""

    results: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("form", ["node", "function"])
@pytest.mark.parametrize("how", ["replayed", "forked"])
def test_a_node_that_is_retried_in_a_run_from_an_old_checkpoint_calls_once(form, how):
    """LangGraph would have its subgraphs begin anew, with the same key.

    Without an update the run continues the finished call, and requests nothing.
    """
    keys: list[str] = []
    failures: list[int] = []

    def model(_: Any, context: AttemptContext) -> str:
        keys.append(context.idempotency_key)
        return "1"

    node = create_retry_node(model, dict, output=int)

    def ask(state: State) -> Any:
        if form == "node":
            found = node.invoke({"params": state["params"]})["output"]
        else:
            found = retry_llm_call(model, state["params"], output=int)
        failures.append(found)
        if len(failures) == 2:
            raise KeyError
        return {"output": found}

    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=KeyError)
    graph = StateGraph(Results).add_node("ask", ask, retry_policy=policy).add_edge(START, "ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    graph.invoke({"params": {"prompt": "hi"}}, thread())
    old = next(each for each in graph.get_state_history(thread()) if each.next == ("ask",))
    config = old.config
    if how == "forked":
        config = graph.update_state(config, {"results": [1]})

    graph.invoke(None, config)

    assert len(failures) == 3
    assert len(keys) == len(set(keys)) == (2 if how == "forked" else 1)


@pytest.mark.parametrize("form", ["node", "function"])
def test_a_first_call_builds_nothing_of_the_state_around_it(mode, checkpointer, monkeypatch, form):
    """The state of the user's graph may hold types that LangGraph builds with a warning."""
    if isinstance(checkpointer, InMemorySaver):
        return  # it has no table of open reviews, so the thread's last input is read for them
    loaded: list[str] = []
    load = checkpointer.serde.loads_typed
    monkeypatch.setattr(
        checkpointer.serde, "loads_typed", lambda typed: loaded.append(typed[0]) or load(typed)
    )
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 5}}, thread())
    assert len(model.calls) == 1
    assert loaded == []
