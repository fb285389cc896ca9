"""Rows of the table `From error_handler` in docs/langgraph.md, with `review_nodes` beside it."""

import operator
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError, NodeError
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from graph_retry import AnswerRefused, StaleDecision, edit, pending_reviews, resume
from graph_retry.nodes import review_nodes

CONFIG: Any = {"configurable": {"thread_id": "1"}}
WRONG, RIGHT, TYPO = {"prompt": "How many pages?"}, {"prompt": "A number."}, {"promt": "A number."}


class State(TypedDict):
    prompt: str
    log: Annotated[list[str], operator.add]


class Flow:
    """Nodes that fail until the prompt asks for a number, and a node `join` after all of them."""

    def __init__(self, *failing: str, reviewed: bool) -> None:
        self.runs: list[str] = []
        self.errors: list[str] = []
        builder: Any = StateGraph(State)
        builder.add_node("good", self._good)
        builder.add_node("join", self._node("join")).add_edge(START, "good")
        builder.add_edge("good", "join")
        for name in failing:
            builder.add_node(name, self._node(name)).add_edge(START, name)
            builder.add_edge(name, "join")
        if reviewed:
            review_nodes(builder, ["prompt"])
        else:
            builder.set_node_defaults(error_handler=self._ask)
        self.graph = builder.compile(InMemorySaver())
        paused = self.graph.invoke({"prompt": "How many?"}, CONFIG)
        self.questions = paused.get("__interrupt__", [])

    def _good(self, state: State) -> dict[str, Any]:
        return {"log": ["good"]}

    def _node(self, name: str) -> Any:
        def run(state: State) -> dict[str, Any]:
            self.runs.append(name)
            if name != "join" and "number" not in state["prompt"]:
                raise ValueError("no number")
            return {"log": [name]}

        return run

    def _ask(self, state: State, error: NodeError) -> Command[Any]:
        self.errors.append(type(error.error).__name__)
        return Command(update=interrupt(str(error.error)), goto=error.node)


def test_a_question_of_an_error_handler_is_not_in_the_state() -> None:
    """`get_state` shows only the question of `review_nodes`."""
    handled, reviewed = Flow("ask", reviewed=False), Flow("ask", reviewed=True)

    assert [len(flow.questions) for flow in (handled, reviewed)] == [1, 1]
    shown = [len(flow.graph.get_state(CONFIG).interrupts) for flow in (handled, reviewed)]
    assert shown == [0, 1]


def test_an_error_handler_gets_a_text_and_repeats_the_node_after_parallel_nodes() -> None:
    """After the answer, `join` runs twice with an error handler, and once with `review_nodes`."""
    handled, reviewed = Flow("ask", reviewed=False), Flow("ask", reviewed=True)
    handled.graph.invoke(Command(resume=RIGHT), CONFIG)
    resume(reviewed.graph, CONFIG, edit(**RIGHT))

    assert handled.errors == ["ValueError", "str"]
    assert [flow.runs.count("join") for flow in (handled, reviewed)] == [2, 1]


def test_two_failed_nodes_cannot_both_be_edited_with_an_error_handler() -> None:
    """Edits of one key conflict, and with `review_nodes` each call has its own edit."""
    handled, reviewed = Flow("a", "b", reviewed=False), Flow("a", "b", reviewed=True)
    with pytest.raises(InvalidUpdateError):
        handled.graph.invoke(Command(resume={each.id: RIGHT for each in handled.questions}), CONFIG)

    reviews = pending_reviews(reviewed.graph, CONFIG)
    answers = {each.review_id: edit(**RIGHT) for each in reviews}
    done = resume(reviewed.graph, CONFIG, answers=answers)
    assert sorted(done["log"]) == ["a", "b", "good", "join"]


def test_a_late_answer_and_a_typo_pay_with_an_error_handler() -> None:
    """An edit, the same edit late, and a typo: four calls, and two with `review_nodes`."""
    handled, reviewed = Flow("ask", reviewed=False), Flow("ask", reviewed=True)
    for answer in (WRONG, WRONG, TYPO):
        handled.graph.invoke(Command(resume=answer), CONFIG)
    assert handled.runs.count("ask") == 4

    (review,) = pending_reviews(reviewed.graph, CONFIG)
    review.answer(edit(**WRONG))
    with pytest.raises(StaleDecision):
        review.answer(edit(**WRONG))
    with pytest.raises(AnswerRefused):
        resume(reviewed.graph, CONFIG, edit(**TYPO))
    assert reviewed.runs.count("ask") == 2
