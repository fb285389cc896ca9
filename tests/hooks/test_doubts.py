"""Signals of a gate: what may be wrong in a valid output, and who is asked by a share."""

import json
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field

from graph_retry import InterventionRequired, retry_llm_call
from graph_retry.hooks import Gate
from tests.loops import Model, one_call, reviews, thread


class Booking(BaseModel):
    """An output with all kinds of values."""

    guest: str
    room: Literal["single", "suite"] = "suite"
    arrival: date = date(2031, 5, 2)
    nights: Annotated[int, Field(ge=1, le=21)] = 3
    price: float = 0
    tags: list[str] = []


TEXT = (
    "Dr. Élodie  Byron takes a suite for 3 nights from 2 May 2031, at 1.250,50 EUR, tel. +47 22 33."
)
EXAMPLE = {"guest": "Ann Lee", "nights": 7}
ASK = f"Read it.\n{TEXT}\nAs in {json.dumps(EXAMPLE)}, by {json.dumps({'properties': {'a': 12}})}"
RIGHT = {"guest": "Élodie Byron", "price": 1250.5}
INPUT: list[tuple[dict[str, Any], set[str]]] = [
    ({}, set()),
    ({"guest": "élodie byron"}, set()),
    ({"guest": "Ann Lee"}, {"/guest"}),
    ({"guest": "Ada"}, {"/guest"}),
    ({"nights": 7}, {"/nights"}),
    ({"nights": 12}, {"/nights"}),
    ({"price": 1.2505}, {"/price"}),
    ({"price": -1250.5}, set()),
    ({"arrival": "2031-05-04"}, {"/arrival"}),
    ({"arrival": "2030-05-02"}, {"/arrival"}),
    ({"tags": ["+4722", "tel", "fax"]}, {"/tags/2"}),
    ({"room": "single"}, set()),  # an enum is a choice, which no input needs to spell
]


def doubts_of(value: dict[str, Any], gate: Gate, params: Any = ASK) -> list[dict[str, str]]:
    """Return the doubts about one answer, of which a person is asked in any case."""
    with pytest.raises(InterventionRequired) as caught:
        retry_llm_call(lambda _: json.dumps(value), params, output=Booking, review=gate)
    return caught.value.attempts[0]["gate"].get("doubts", [])


@pytest.mark.parametrize(("changed", "paths"), INPUT)
def test_values_that_the_input_does_not_have_are_doubted(changed, paths):
    """Examples and schemas in the prompt are no input; numbers and dates count by their value."""
    doubts = doubts_of({**RIGHT, **changed}, Gate(share=1, of="input"))
    assert {each["path"] for each in doubts} == paths
    assert {each["why"] for each in doubts} <= {"not in the input"}


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ({"input": "text"}, {"prompt": "Guests: Ada", "text": TEXT}),
        ({"input": lambda params: params["page"]["text"]}, {"page": {"text": TEXT}}),
        ({}, {"messages": [{"role": "system", "content": "?"}, {"role": "user", "content": TEXT}]}),
    ],
)
def test_the_input_is_the_field_that_was_named_or_the_prompt(options, params):
    """What stands elsewhere in the params does not count; computed fields are left out."""
    gate = Gate(share=1, of=["input"], computed=["nights"], **options)
    assert doubts_of({**RIGHT, "nights": 9}, gate, params) == []
    assert [each["path"] for each in doubts_of({**RIGHT, "guest": "Ada"}, gate, params)] == [
        "/guest"
    ]


def test_a_value_exactly_at_a_limit_is_doubted():
    """A model without an idea fills in the limit that it reads in the schema."""
    assert doubts_of({**RIGHT, "nights": 20}, Gate(share=1, of="edge")) == []
    (doubt,) = doubts_of({**RIGHT, "nights": 21}, Gate(share=1, of="edge"))
    assert doubt == {"path": "/nights", "why": "exactly at its limit"}


@pytest.mark.parametrize(
    "spelled", [json.dumps, dict, lambda value: f"```\n{json.dumps(value)}\n```"]
)
def test_fields_that_differ_in_a_second_answer_are_doubted(spelled):
    """The second answer is asked for once, with the attempt's params, and may be text or value."""
    asked = []

    def again(attempt):
        asked.append(attempt["params"])
        return spelled({**Booking(**RIGHT).model_dump(mode="json"), "nights": 4})

    doubts = doubts_of(RIGHT, Gate(share=1, of=["second"], second=again))
    assert doubts == [{"path": "/nights", "why": "differs in a second answer"}]
    assert asked == [ASK]


def test_the_question_names_the_fields_to_look_at(form, mode):
    """A person reads the doubts in the description, and the ledger has them as data."""
    gate = Gate(confidence=0.9, of=["input", "edge"])
    text = json.dumps({**RIGHT, "guest": "Ada", "nights": 21})
    model = Model(lambda params: text)
    graph = one_call(form, mode, model, InMemorySaver(), output=Booking, review=gate)
    mode.invoke(graph, {"params": {"prompt": ASK}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert (
        review.doubts == "/guest: not in the input\n/nights: not in the input, exactly at its limit"
    )
    assert "Look here first" in review.value["description"]
    assert "/guest: not in the input" in review.value["description"]


def asked_by(gate: Gate, sure: list[float]) -> list[int]:
    """Return the numbers of the outputs that a gate asks about, in order."""
    asked = []
    for number, each in enumerate(sure):
        value = {"value": {"confidence": each}}
        record: Any = {"idempotency_key": str(number), "raw": value, "parsed": value}
        if gate(record)["ask"]:
            asked.append(number)
    return asked


def test_a_share_asks_about_the_least_sure():
    """Whatever the level of the confidences, the least sure ones are asked about."""
    sure = [(7 * number) % 100 / 1000 + 0.9 for number in range(400)]
    asked = asked_by(Gate(share=0.2), sure)
    assert 60 <= len(asked) <= 100
    late = [number for number in asked if number >= 100]
    assert max(sure[number] for number in late) < 0.925


def test_equally_sure_outputs_are_asked_about_by_chance():
    """If no signal tells outputs apart, the share is a sample of them."""
    assert 60 <= len(asked_by(Gate(share=0.2), [1.0] * 400)) <= 100
    assert asked_by(Gate(share=0), [0.5] * 50) == []
    assert len(asked_by(Gate(share=1), [0.5] * 50)) == 50


def test_known_confidences_are_compared_with_from_the_first_output():
    """A new process goes on where the ledgers of the last one ended."""
    gate = Gate(share=0.1, known=[number / 100 for number in range(100)])
    assert asked_by(gate, [0.05, 0.5, 0.99]) == [0]


@pytest.mark.parametrize(
    "options",
    [{}, {"confidence": 0.5, "share": 0.5}, {"share": 0.5, "of": "second"}, {"share": 2}],
)
def test_a_gate_that_cannot_decide_is_refused(options):
    """One limit or one share, and a source with its function."""
    with pytest.raises((TypeError, ValueError), match=r"`\w+`"):
        Gate(**options)
