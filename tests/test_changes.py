"""A change touches the files that AGENTS.md names, and reaches every place."""

import pytest

from tests.changes import changed_copy, printed

IMPORT = "from graph_retry._core.review import effects\n\n"
EFFECT = """

async def discarded(_given: Reading, _question: Question) -> Accepted:
    return Accepted(Decision(type="discard"), End("cancelled", without_output=True))
"""
ROW = """ROWS: dict[str, Row] = {
    "discard": Row(
        outcome="cancelled",
        by_default=False,
        decide=effects.discarded,
        does=lambda _: "throw this call away",
        typed=("REASON",),
        place=9,
        done=("The call is thrown away.", "It is not ours."),
        how="discarded",
    ),
"""
CONSTRUCTOR = '''

def discard(message: str) -> Decision:
    """Throw the call away."""
    return {"type": "discard", "message": message}
'''
DECISION = {
    "_core/review/decisions.py": ("ROWS: dict[str, Row] = {\n", IMPORT + ROW),
    "_core/review/effects.py": ("", EFFECT),
    "_core/review/answers.py": (
        'DecisionType = Literal[ValidDecisionType, "accept"]',
        'DecisionType = Literal[ValidDecisionType, "accept", "discard"]' + CONSTRUCTOR,
    ),
}
PROGRAM = """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from graph_retry import CallCancelled, pending_reviews, resume, retry_llm_call
from graph_retry._core.review.answers import discard
from graph_retry.data import corrections_of, plot_timeline, summarize
from graph_retry.desk.cli.answering.decide import ways
from graph_retry.desk.web.forms.ways import ways_of
from graph_retry.reviews import DECISIONS
from graph_retry.threads import attempts_of

@entrypoint(checkpointer=InMemorySaver())
def flow(prompt):
    allowed = ("approve", "edit", "reject", "discard")
    return retry_llm_call(lambda given: "no", prompt, output=int, allowed_decisions=allowed)

config = {"configurable": {"thread_id": "1"}}
flow.invoke("how many?", config)
(review,) = pending_reviews(flow, config)
print("schema", "discard" in str(review.value["response_schema"]))
print("question", "discard" in review.value["description"])
print("page", [way.does for way in ways_of(review) if way.word == "discard"])
print("page, done", DECISIONS["discard"].done[0])
print("console", "throw this call away" in ways(review.allowed_decisions, review))
try:
    resume(flow, config, discard("not ours"))
except CallCancelled as error:
    print("ended", type(error).__name__)
(ledger,) = attempts_of(flow, config)
print("ledger", ledger.outcome, ledger.attempts[-1]["decision"]["type"])
print("data", [row["how"] for row in corrections_of([ledger])])
print("figures", dict(summarize([ledger])["decisions"]))
print("plot", [text.get_text() for text in plot_timeline([ledger]).get_legend().get_texts()][-1])
"""


@pytest.mark.slow
def test_a_new_decision_reaches_every_place(tmp_path):
    """A row, its constructor and its word: page, console, data sets, figures and plot have it."""
    told = printed(changed_copy(tmp_path, DECISION), PROGRAM)
    assert told == [
        "schema True",
        "question True",
        "page ['throw this call away']",
        "page, done The call is thrown away.",
        "console True",
        "ended CallCancelled",
        "ledger cancelled discard",
        "data ['discarded']",
        "figures {'discard': 1}",
        "plot call cancelled by a reviewer",
    ]


PROVIDER = '''"""A provider of its own words."""

from graph_retry._core.output.providers.provider import Provider, meaning

PROVIDER = Provider(finish_words=meaning("truncated", "ran_out_of_ink"))
'''
CUT = """
from graph_retry import Completion, InterventionRequired, retry_llm_call

def ask(given):
    return Completion("12", finish_reason="ran_out_of_ink")

try:
    print(retry_llm_call(ask, "x", output=int))
except InterventionRequired as error:
    print(error.attempts[-1]["failure"]["kind"])
"""


@pytest.mark.slow
def test_a_new_provider_is_one_file(tmp_path):
    """A file in the folder of providers is enough: its words are known at the next call."""
    place = changed_copy(tmp_path, {"_core/output/providers/acme.py": ("", PROVIDER)})
    assert printed(place, CUT) == ["truncated"]
    assert printed(changed_copy(tmp_path / "as it is", {}), CUT) == ["12"]


SCENES = """
import importlib.util
from typing import Any, TypedDict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import StateGraph
from graph_retry import (
    CallCancelled, create_retry_node, edit, pending_reviews, reject, respond, resume, retry_llm_call
)
from graph_retry.hooks import Budget, Gate
from graph_retry.threads import attempts_of, list_reviews, rewind

saver = InMemorySaver()

def at(thread):
    return {"configurable": {"thread_id": thread}}

def flow(*answers, hook=None, output=int, **options):
    answers = [*answers]

    @entrypoint(checkpointer=saver)
    def workflow(prompt):
        model = lambda given: answers.pop(0)
        return retry_llm_call(model, {"prompt": prompt}, hook, output=output, **options)

    return workflow

print("success", flow("1").invoke("x", at("1")))
told = flow("no", "```json\\n[2,]\\n```", output=list, feedback="full", auto_retries=2)
print("feedback and repair", told.invoke("x", at("2")))
asked = flow("no", "3", "33")
asked.invoke("x", at("3"))
(review,) = pending_reviews(asked, at("3"))
print("edit", resume(asked, at("3"), edit(prompt="y")))
print("rewind", rewind(asked, at("3"), attempt=1, params={"prompt": "z"}))
print("ledger", [len(ledger.attempts) for ledger in attempts_of(asked, at("3"))])
given = flow("no", budget=Budget(tokens=9))
given.invoke("x", at("4"))
print("inbox", [each.thread_id for each in list_reviews(given)])
print("respond", resume(given, at("4"), respond(4)))
ended = flow("no")
ended.invoke("x", at("5"))
try:
    resume(ended, at("5"), reject("why"))
except CallCancelled:
    print("reject")
gate = flow('{"confidence": 0.1}', output=dict, review=Gate(confidence=0.5))
gate.invoke("x", at("6"))
print("gate", resume(gate, at("6"), {"type": "approve"}))

class State(TypedDict, total=False):
    params: dict
    output: Any
    status: str

answers = ["no", "7"]
builder = StateGraph(State)
builder.add_node("ask", create_retry_node(lambda given: answers.pop(0), dict, output=int))
builder.set_entry_point("ask")
graph = builder.compile(checkpointer=saver)
graph.invoke({"params": {"prompt": "x"}}, at("7"))
print("node", resume(graph, at("7"), edit(prompt="y"))["output"])
around = ("agents", "data", "desk", "observers")
print("left", [name for name in around if importlib.util.find_spec(f"graph_retry.{name}")])
"""


@pytest.mark.slow
def test_what_stands_around_a_call_can_be_deleted(tmp_path):
    """Calls, questions, answers, forks, the inbox and a node work without four folders."""
    place = changed_copy(tmp_path, {}, without=("agents", "data", "desk", "observers"))
    assert printed(place, SCENES) == [
        "success 1",
        "feedback and repair [2]",
        "edit 3",
        "rewind 33",
        "ledger [2, 1]",
        "inbox ['4']",
        "respond 4",
        "reject",
        "gate {'confidence': 0.1}",
        "node 7",
        "left []",
    ]
