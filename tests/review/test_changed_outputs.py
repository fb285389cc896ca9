"""A person changes a part of an output: one field, or one word of a mail."""

import json

import pytest
from pydantic import BaseModel, TypeAdapter

from graph_retry import approve, respond
from graph_retry._core.review.clients.payload import build_payload, response_schema
from graph_retry._core.review.effects import End
from graph_retry._core.review.review_record import Refused
from tests.review.questions import judge, question


class Line(BaseModel):
    what: str
    cents: int


class Bill(BaseModel):
    vendor: str
    total: int
    lines: list[Line] = []
    to: dict[str, str] = {}
    note: str | None = None


class Trip(BaseModel, extra="forbid"):
    miles: int
    stops: list[str] = []
    car: Line | None = None


class Strict(BaseModel, extra="forbid"):
    name: str
    trip: Trip


TRIP = {"name": "Ada", "trip": {"miles": 3, "km": 5, "stops": ["a", "b", "c", *"0123456789"]}}
READ = {"vendor": "Ada", "total": "seven", "lines": [{"what": "tea", "cents": 7}], "to": {"a": "x"}}
MAIL = "Dear Bob,\n\nwe meet on Monday. Bob, bring tea.\n"


def asked_about(value, output=Bill, **more):
    """Ask about an output that was read as this value."""
    return question(output=output, read={"value": value}, **more)


@pytest.mark.parametrize(
    ("parts", "changed"),
    [
        ({"changes": {"total": 7}}, {"total": 7}),
        ({"changes": {"total": "7"}}, {"total": 7}),
        ({"changes": {"total": 7, "to": {"b": "y"}}}, {"total": 7, "to": {"a": "x", "b": "y"}}),
        ({"changes": {"total": 7, "note": "late"}}, {"total": 7, "note": "late"}),
        (
            {"changes": {"total": 7}, "replace": {"tea": "coffee"}},
            {"total": 7, "lines": [{"what": "coffee", "cents": 7}]},
        ),
    ],
)
def test_fields_and_words_of_the_output_that_was_read_are_changed(parts, changed):
    """The others stay, the whole is validated, and the decision keeps what was changed."""
    verdict = judge(respond(**parts), asked_about(READ))
    whole = {**READ, "note": None, **changed}
    assert verdict.effect == End("succeeded", {"value": whole})
    assert verdict.decision == {"type": "respond", "output": whole, **parts}


def test_one_word_of_a_mail_is_changed():
    """Of a text output, the words that are there once are replaced."""
    asked = asked_about(MAIL, output=str, failure=None, takes_output=True)
    verdict = judge({"type": "respond", "replace": {"Monday": "Tuesday"}}, asked)
    assert verdict.effect == End("succeeded", {"value": MAIL.replace("Monday", "Tuesday")})


@pytest.mark.parametrize(
    ("answer", "value", "why"),
    [
        ({"changes": {"totl": 7}}, READ, 'no field "output.totl". Did you mean `total`?'),
        ({"changes": {"weight": 7}}, READ, 'no field "output.weight".'),
        ({"changes": {"vendor": "Bob"}}, READ, "/total"),
        ({"changes": {"total": "many"}}, READ, '`output.total` expects a number, not "many"'),
        ({"changes": 7}, READ, "works only on objects, but it found 7"),
        (
            {"changes": {"a": 1}},
            [1],
            "works only on objects, but it found [1]",
        ),
        ({"replace": {"Bob": "Eve"}}, MAIL, '"Bob" is in the output 2 times'),
        ({"replace": {"bob": "Eve"}}, MAIL, '"bob" is not in the output'),
        ({"replace": {"": "Eve"}}, MAIL, "`replace` is an object"),
        ({"replace": {"Monday": 1}}, MAIL, "`replace` is an object"),
        ({"changes": {"total": 7}, "output": READ}, READ, "of it, not both"),
        ({"drop": "/note"}, READ, "`drop` takes JSON Pointers"),
        (
            {"drop": ["vendor"]},
            READ,
            '"vendor" is not a place in the output: give a path such as /lines/0. Did',
        ),
        ({"drop": ["/lines/-"]}, READ, '"/lines/-" is not a place in the output'),
        ({"drop": ["/lines/00"]}, READ, '"/lines/00" is not a place in the output'),
        ({"drop": [""]}, READ, '"" is not a place in the output'),
        ({"drop": ["/vendor"]}, READ, "/vendor: Field required"),
        ({"move": False}, READ, "`move` must be true"),
        ({"move": True}, READ, "no key of this output is in a wrong object"),
    ],
)
def test_a_change_that_is_not_clear_is_refused(answer, value, why):
    """An unknown field would be passed over by most types, and words may occur twice."""
    asked = asked_about(value, output=str if value is MAIL else Bill)
    verdict = judge({"type": "respond", **answer}, asked)
    assert isinstance(verdict, Refused)
    assert why in verdict.problem


@pytest.mark.parametrize("as_schema", [False, True])
@pytest.mark.parametrize(
    ("parts", "trip", "dropped"),
    [
        ({"drop": ["/trip/km"]}, {}, ["/trip/km"]),
        ({"drop": ["/trip/stops/0", "/trip/km", "/trip/stops/12"]}, {"stops": "bc012345678"}, None),
        ({"drop": ["/trip/stops", "/trip/stops/1", "/trip/km"]}, {"stops": ""}, None),
        # The schema forbids `km`: it goes with any change, and the ledger says so.
        ({"changes": {"trip": {"miles": 4}}}, {"miles": 4}, ["/trip/km"]),
        ({"drop": ["/trip/stops/0"]}, {"stops": "bc0123456789"}, ["/trip/stops/0", "/trip/km"]),
    ],
)
def test_keys_are_left_out_of_the_output(parts, trip, dropped, as_schema):
    """Those that are named, and those that the schema forbids; places are those shown."""
    output = TypeAdapter(Strict).json_schema() if as_schema else Strict
    verdict = judge(respond(**parts), asked_about(TRIP, output=output))
    left = {"miles": 3, "stops": "abc0123456789", "car": None} | trip
    left["stops"] = list(left["stops"])
    if as_schema:
        del left["car"]
        left = {key: value for key, value in left.items() if value or key == "miles"}
    assert verdict.effect == End("succeeded", {"value": {"name": "Ada", "trip": left}})
    assert verdict.decision["drop"] == (dropped or parts["drop"])


def test_misplaced_keys_are_moved_by_one_word():
    """The keys go where the issue says; other parts are applied to what was shown."""
    flat = {"name": "Ada", "miles": 3, "why": "x"}
    part = {"trip": {"stops": ["a"]}}
    verdict = judge(respond(move=True, changes=part), asked_about(flat, output=Strict))
    whole = {"name": "Ada", "trip": {"miles": 3, "stops": ["a"], "car": None}}
    assert verdict.effect == End("succeeded", {"value": whole})
    assert verdict.decision["drop"] == ["/why"]


def test_where_nothing_was_read_there_is_nothing_to_change():
    """The answer is told to send the whole, and the question does not offer a part."""
    asked = question(output=Bill)
    assert "Send the whole value as `output`" in judge(respond(changes={"total": 7}), asked).problem
    for part in ("changes", "replace", "drop", "move"):
        assert f'"{part}":' not in build_payload(asked)["description"]
        assert part not in json.dumps(response_schema(asked)["oneOf"])


def test_schema_and_description_offer_a_part_where_an_output_was_read():
    """Fields only of an object, words of any output; keys to move if an issue names some."""
    parts = {"changes", "replace", "drop", "move"}
    misplaced = [{"path": "/trip", "message": "`miles` belongs there", "code": "misplaced"}]
    for value, offered, issues in (
        (READ, parts - {"move"}, []),
        (MAIL, {"replace"}, []),
        ({"name": "Ada", "miles": 3}, parts, misplaced),
    ):
        payload = build_payload(asked_about(value, issues=issues))
        (branch,) = (
            branch
            for branch in payload["response_schema"]["oneOf"]
            if branch["properties"]["type"]["const"] == "respond"
        )
        assert parts & branch["properties"].keys() == offered
        for part in parts:
            assert (f'"{part}": ' in payload["description"]) == (part in offered)


def test_what_was_shown_redacted_comes_back_as_it_was():
    """Neither a change nor a whole output puts the redacted text into the result."""
    mail = {"to": "ada@example.org", "text": "Hello"}
    hide = {"redact": lambda text: text.replace("ada@example.org", "***")}
    asked = asked_about(mail, output=dict[str, str], failure=None, takes_output=True, **hide)
    for answer in (
        respond(changes={"text": "Bye"}),
        respond(changes={"text": "Bye", "to": "***"}),
        respond({"to": "***", "text": "Bye"}),
    ):
        assert judge(answer, asked).effect == End("succeeded", {"value": {**mail, "text": "Bye"}})


def test_a_text_that_is_neither_an_output_nor_its_json_is_told_so():
    """The error of the JSON follows that of the text."""
    refused = judge(respond('{"a": 1e400}'), asked_about(READ))
    why = "it is not valid JSON: 1e400 is out of the range of floats"
    assert f"The output was read as a text, because {why}" in refused.problem
    assert refused.problem.endswith("Correct the JSON, or give the value itself.")


def test_a_choice_without_alternatives_is_told_what_to_do():
    """There is nothing to choose from."""
    refused = judge(approve(2), asked_about(READ))
    told = "`choice` is 2, but this question has no alternatives: leave `choice` out."
    assert refused.problem == told


@pytest.mark.parametrize("given", [{}, {"output": 1, "changes": {"a": 1}}])
def test_respond_takes_a_whole_or_a_part(given):
    """Both, or nothing, is a mistake of the program's."""
    with pytest.raises(TypeError, match="either a whole `output`"):
        respond(**given)
