"""A rewind of a call that is over keeps its change: through a crash, and where params change."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from graph_retry import AnswerRefused, edit, resume, retry_llm_call
from graph_retry._core.threads import history
from graph_retry.threads import rewind
from tests.loops import Model, State, one_call, thread


class Crash(BaseException):
    """What ends a process from inside, as Ctrl-C does."""


class Dying(InMemorySaver):
    """A saver whose process ends, once `doomed`, at its next write but one."""

    left = None

    def put(self, config, *args):
        if Dying.left == 0:
            raise Crash
        done = super().put(config, *args)
        Dying.left = Dying.left and Dying.left - 1
        return done


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_rewind_of_a_finished_call_is_safe_against_death(form, writes):
    """Whoever runs the thread on applies the change, and repeats no finished attempt."""
    model = Model(goal=1)
    graph = one_call(form, None, model, Dying())
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), edit(n=1))
    Dying.left = writes
    with pytest.raises(Crash):
        rewind(graph, thread(), attempt=2, params={"n": 5})
    Dying.left = None

    assert graph.invoke(None, thread())["output"] == {"n": 5}
    assert [call["n"] for call in model.calls] == [0, 1, 5]


def changing(made: list[int], model: Any, **options: Any) -> Any:
    """Compile a node whose params differ from run to run."""

    def ask(_: State) -> State:
        made.append(len(made))
        given = {"n": made[-1] + 10}
        return {"output": retry_llm_call(model, given, output=dict[str, int], **options)}

    return (
        StateGraph(State)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .compile(checkpointer=InMemorySaver())
    )


def test_a_rewind_of_a_call_whose_params_change_is_refused_before_anything_is_paid():
    """The error says which fields differ, and `key=`."""
    model = Model(goal=1)
    graph = changing([], model, name="count")
    graph.invoke({}, thread())
    before = graph.get_state(thread()).values

    with pytest.raises(ValueError, match=r"differ in `n`.*key="):
        rewind(graph, thread(), attempt=1, params={"n": 3})

    assert len(model.calls) == 1
    assert graph.get_state(thread()).values == before


def test_a_rewind_of_a_call_with_a_key_goes_on_from_the_saved_params():
    """Whatever the first params are today."""
    model = Model(goal=1)
    graph = changing([], model, name="count", key="mine")
    graph.invoke({}, thread())

    assert rewind(graph, thread(), attempt=1, params={"n": 3})["output"] == {"n": 3}
    assert [call["n"] for call in model.calls] == [10, 3]


def test_a_rewind_whose_call_is_not_made_again_says_so():
    """The node takes another way today. The thread has its earlier state."""
    model, calls = Model(goal=1), [True, False]

    def ask(_: State) -> State:
        made = calls.pop(0) and retry_llm_call(model, {"n": 1}, output=dict[str, int])
        return {"output": made}

    graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    graph.invoke({}, thread())
    (ledger,) = history.attempts_of(graph, thread())

    before = graph.get_state(thread())
    with pytest.raises(AnswerRefused, match="did not make this call again"):
        rewind(graph, thread(), ledger, attempt=1, params={"n": 3})
    after = graph.get_state(thread())
    assert (after.values, after.next) == (before.values, before.next)
