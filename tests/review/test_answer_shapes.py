"""Every answer shape gives the decision it means, or a refusal that says why."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graph_retry import approve, edit, reject, respond
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import Refused
from tests.review.questions import TITLE, Person, Style, judge, question

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))
COOLER: dict[str, Any] = {"type": "edit", "params": {"temperature": 0.2}}
STOP: dict[str, Any] = {"type": "reject", "message": None}
ADA = {"name": "Ada", "age": 36}
RETRY = {"type": "approve"}


@dataclass
class Sent:
    """A decision as somebody's own dataclass."""

    type: str = "edit"
    params: dict[str, Any] = field(default_factory=lambda: {"style": Style(length=7)})


ACCEPTED: list[tuple[Any, dict[str, Any]]] = [
    ("approve", RETRY),
    (" Approve\n", RETRY),
    ("RETRY", RETRY),
    ("yes", RETRY),
    (True, RETRY),
    ("true", RETRY),
    ('"approve"', RETRY),
    ('"\\"approve\\""', RETRY),
    (["approve"], RETRY),
    ({"resume": "approve"}, RETRY),
    ({"resume": {"decisions": ["approve"]}}, RETRY),
    ({"resume": '{"type": "approve"}'}, RETRY),
    ({"type": "Approve "}, RETRY),
    ({"type": "approve", "params": None, "message": None, "output": None}, RETRY),
    ({"type": "approve", "params": {"temperature": 1}}, RETRY),
    ({"type": "approve", "metadata": {"a": 1}, "acceptAllowed": True, "id": "x"}, RETRY),
    ([{"type": "accept", "args": {"action": TITLE, "args": {"temperature": "0.2"}}}], RETRY),
    ({"type": "approve", "reason": "again"}, {**RETRY, "message": "again"}),
    ({"type": "approve", "action": TITLE}, RETRY),
    ({"type": "approve", "action": "extract"}, RETRY),
    ({"type": "approve", "__agui_cancelled__": False}, RETRY),
    ({"action": "retry", "revised_params": None}, RETRY),
    ({"action": "retry", "revised_params": {}}, RETRY),
    ({"type": "edit", "params": {}}, RETRY),
    ({"type": "edit", "params": {"prompt": "Read the invoice.", "seed": None}}, RETRY),
    (approve(), RETRY),
    ({"type": "approve", "attempt": 2}, {**RETRY, "attempt": 2}),
    (
        {"type": "approve", "attempt": "2", "review_id": "r2"},
        {**RETRY, "attempt": 2, "review_id": "r2"},
    ),
    ({"type": "approve", "attempt": 2.0, "by": "ada"}, {**RETRY, "attempt": 2, "by": "ada"}),
    ({"decisions": [RETRY], "decision_id": "d2"}, {**RETRY, "decision_id": "d2"}),
    (COOLER, COOLER),
    (edit(temperature=0.2), COOLER),
    (
        edit(style=Style(length=7)),
        {"type": "edit", "params": {"style": {"tone": "plain", "length": 7, "ratio": 1.0}}},
    ),
    (Sent(), {"type": "edit", "params": {"style": {"tone": "plain", "length": 7, "ratio": 1.0}}}),
    (json.dumps(COOLER), COOLER),
    (json.dumps(json.dumps(COOLER)), COOLER),
    ({"type": "edit", "params": json.dumps(COOLER["params"])}, COOLER),
    (
        {"type": "edit", "params": {"temperature": "0.2"}, "message": "cooler"},
        {**COOLER, "message": "cooler"},
    ),
    ({"type": "edit", "revised_params": {"temperature": 0.2}}, COOLER),
    ({"type": "edit", "edited_action": {"name": TITLE, "arguments": {"temperature": 0.2}}}, COOLER),
    ({"type": "edit", "edited_action": {"args": {"temperature": 0.2}}}, COOLER),
    ({"type": "edit", "args": {"args": {"temperature": "0.2"}}}, COOLER),
    ({"type": "edit", "action": "retry", "params": {"temperature": 0.2}}, COOLER),
    ({"action": "edit", "params": {"temperature": 0.2}}, COOLER),
    ("reject", STOP),
    ("CANCEL", STOP),
    ("no", STOP),
    (False, STOP),
    ("false", STOP),
    ({"type": "reject"}, STOP),
    ({"type": "reject", "message": ""}, STOP),
    ({"type": "reject", "reason": "no"}, {"type": "reject", "message": "no"}),
    ({"type": "cancel", "message": "no"}, {"type": "reject", "message": "no"}),
    (reject("no"), {"type": "reject", "message": "no"}),
    ([{"type": "ignore", "args": {"action": TITLE, "args": {}}}], STOP),
    (respond(ADA), {"type": "respond", "output": ADA}),
    (respond(Person(**ADA)), {"type": "respond", "output": ADA}),
    ({"type": "respond", "output": json.dumps(ADA)}, {"type": "respond", "output": ADA}),
    ({"type": "respond", "message": json.dumps(ADA)}, {"type": "respond", "output": ADA}),
    ({"type": "response", "output": ADA}, {"type": "respond", "output": ADA}),
    ([{"type": "response", "args": json.dumps(respond(ADA))}], {"type": "respond", "output": ADA}),
]

REFUSED: list[tuple[Any, str]] = [
    (None, "is not a decision"),
    (1, "is not a decision"),
    (0.5, "is not a decision"),
    ("", "neither a known word nor JSON"),
    ("please try a smaller model", "neither a known word nor JSON"),
    ("edit", "object of the changed fields"),
    ({"type": "response", "args": '{"no": "decision"}'}, "has no `type`"),
    ("accept", "Accept is not allowed here"),
    ({"type": "accept"}, "Accept is not allowed here"),
    ({"type": "comment", "message": "be brief"}, "Comment is not allowed here"),
    ("null", "is not a decision"),
    ('{"type": "approve", "type": "reject"}', "is given twice"),
    ('{"type": "edit", "params": {"temperature": NaN}}', "NaN is not a number"),
    ('{"type": "edit", "params": {"temperature": -1e400}}', "-1e400 is out of the range of floats"),
    ('{"type": "edit", "params": {"temperature": 1e-400}}', "1e-400 is out of the range of floats"),
    ('{"type": "edit", "params": {', "The answer is not valid JSON (Expecting"),
    ("[" * 100_000, "not valid JSON (it is nested too deeply)"),
    ("9" * 5_000, "out of the range of floats"),
    ({}, "has no `type`"),
    ([], "no decision"),
    ({"decisions": []}, "no decision"),
    ({"decisions": [RETRY, RETRY]}, "2 decisions"),
    ([RETRY, {"type": "reject"}], "2 decisions"),
    ({"resume": None}, "null"),
    ({"params": {"temperature": 0.2}}, "has no `type`"),
    ({"type": "llm_intervention"}, "is not a decision"),
    ({"type": "delete"}, "is not a decision"),
    ({"type": 3}, "is not a decision"),
    ({"type": "reject", "action": "retry", "message": 7}, "must be text"),
    ({"type": "edit", "action": "cancel", "params": {}}, 'for "cancel"'),
    ({"type": "edit"}, "object of the changed fields"),
    ({"type": "edit", "params": None}, "object of the changed fields"),
    ({"type": "edit", "param": {"temperature": 0.2}}, "Did you mean `params`?"),
    ({"type": "edit", "params": {}, "revised_params": {}}, "params twice"),
    ({"type": "edit", "params": ["temperature"]}, "object of the fields"),
    ({"type": "edit", "params": "cooler"}, "object of the fields"),
    ({"type": "edit", "params": {"temprature": 0.2}}, "Did you mean `temperature`?"),
    ({"type": "edit", "params": {"temperature": "warm"}}, "`temperature` expects a number"),
    ({"type": "edit", "params": {"top_k": 0}}, "/top_k"),
    ({"type": "edit", "edited_action": "x"}, "object of the changed fields"),
    ({"type": "edit", "edited_action": {"name": TITLE}}, "object of the changed fields"),
    ({"type": "edit", "args": {"temperature": 0.2}}, "object of the changed fields"),
    ({"type": "approve", "params": {"temperature": 0.2}}, "must leave the params as shown"),
    ({"type": "approve", "args": {"temperature": 0.2}}, "in which no params can be read"),
    ({"type": "approve", "args": {"args": {"temperature": 0.2}}}, "leave the params as shown"),
    ({"type": "approve", "output": ADA}, 'no key "output"'),
    ({"type": "reject", "params": {}}, 'no key "params"'),
    ({"type": "reject", "message": ["no"]}, "must be text"),
    ({"type": "respond"}, "To respond, send"),
    ({"type": "respond", "output": None}, "output is not valid"),
    ({"type": "respond", "output": {"name": "Ada"}}, "/age"),
    ({"type": "respond", "output": "Ada"}, "output is not valid"),
    ({"type": "approve", "attempt": 1}, "for attempt 1"),
    ({"type": "approve", "attempt": "two"}, 'for attempt "two"'),
    ({"type": "approve", "attempt": True}, "for attempt true"),
    ({"type": "approve", "review_id": "r1"}, 'for review "r1"'),
    ({"type": "approve", "decision_id": "d1"}, "already applied"),
    ({"type": "approve", "by": {"name": "Ada"}}, "`by` must be text"),
    ({"decisions": [RETRY], "attempt": 1}, "for attempt 1"),
    ({"decisions": [RETRY], "comment": "x"}, 'no key "comment"'),
    ({"type": "approve", "action": TITLE.replace("2", "1")}, "stale"),
    ([{"type": "accept", "args": {"action": "other", "args": None}}], "stale"),
    ({"type": "edit", "edited_action": {"name": "search", "args": {"seed": 1}}}, "stale"),
    ([{"type": "response", "args": '{"type": "approve", "attempt": 1}'}], "for attempt 1"),
    ({"type": "edit", "params": {"temperature": object()}}, "cannot be written as JSON"),
    ({1: "approve"}, "has no `type`"),
    ({"type": "respond", "output": [object()]}, "cannot be written as JSON"),
    ({"type": "reject", "message": "\ud800"}, "surrogates not allowed"),
    ('{"type": "reject", "message": "\\ud800"}', "surrogates not allowed"),
]


@pytest.mark.parametrize("client", RECORDED)
def test_recorded_answers_of_real_clients(client: str) -> None:
    """What a real client sends is read as what the person clicked."""
    answer, decision = RECORDED[client]
    verdict = judge(answer, question())
    assert isinstance(verdict, Accepted), verdict
    assert verdict.decision == decision


@pytest.mark.parametrize("client", RECORDED)
@pytest.mark.parametrize(
    "wrap", [json.dumps, lambda a: {"resume": a}, lambda a: json.dumps({"resume": a})]
)
def test_wrapped_answers_mean_the_same(client: str, wrap: Any) -> None:
    """JSON text and `{"resume": …}` around an answer change nothing."""
    answer, decision = RECORDED[client]
    verdict = judge(wrap(answer), question())
    assert isinstance(verdict, Accepted), verdict
    assert verdict.decision == decision


@pytest.mark.parametrize(("answer", "decision"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_accepted_answers(answer: Any, decision: dict[str, Any]) -> None:
    """A good answer in any shape becomes the canonical decision."""
    verdict = judge(answer, question(seen_decisions=("d1",)))
    assert isinstance(verdict, Accepted), verdict
    assert verdict.decision == decision
    assert json.loads(json.dumps(verdict.decision)) == verdict.decision


@pytest.mark.parametrize(("answer", "phrase"), REFUSED, ids=range(len(REFUSED)))
def test_refused_answers(answer: Any, phrase: str) -> None:
    """A bad answer is refused with its reason, and never raises."""
    verdict = judge(answer, question(seen_decisions=("d1",)))
    assert isinstance(verdict, Refused), verdict
    assert phrase in verdict.problem
    assert len(verdict.problem) <= 2_000


@pytest.mark.parametrize("kind", ["approve", "edit", "reject", "respond"])
def test_a_decision_that_is_not_allowed_is_refused(kind: str) -> None:
    """What the caller did not allow is refused, and the refusal lists what is."""
    data = {"edit": {"params": {"temperature": 0.2}}, "respond": {"output": ADA}}
    others = tuple(k for k in ("approve", "edit", "reject", "respond") if k != kind)
    verdict = judge({"type": kind, **data.get(kind, {})}, question(allowed=others))
    assert isinstance(verdict, Refused)
    assert f"{kind.capitalize()} is not allowed here" in verdict.problem
    assert all(other in verdict.problem for other in others)
