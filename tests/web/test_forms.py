"""A value as a form and back: nothing is lost, whatever it is."""

from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel, Field, TypeAdapter
from starlette.testclient import TestClient

from graph_retry import pending_reviews, retry_llm_call
from graph_retry._core.ground.json import ABSENT
from graph_retry.desk.web import create_app
from graph_retry.desk.web.forms.card import first_value
from graph_retry.desk.web.forms.form_fields import Form as Fields
from graph_retry.desk.web.forms.form_values import Unread, filled, has_unread, read_form
from graph_retry.desk.web.page import environment
from tests.parts import draws
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

ROUND = environment().from_string(
    '{% from "fields.html" import field %}'
    '<form id="answer" action="x">{{ field(whole, "v.") }}</form>'
)


def there_and_back(schema: Any, value: Any, *, show_absent: bool = False) -> Any:
    """Draw a value as a form, send it untouched, and read what came."""
    whole = Fields(schema, show_absent=show_absent).field(schema, value)
    form = Form(ROUND.render(whole=whole))
    return read_form([(name.removeprefix("v."), text) for name, text in form.controls])


TEXTS = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("\r\n\t\x00\x1b\u202e\u2028 <>&\"'"))
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(TEXTS, below, max_size=4)),
    max_leaves=12,
)


@pytest.mark.drawn
@settings(max_examples=draws(150, 2_000))
@given(value=VALUES, show_absent=st.booleans())
def test_any_value_without_a_schema_comes_back_as_it_was(value, show_absent):
    """Whatever JSON holds survives a form: line ends, quotes, escapes, names, numbers."""
    back = there_and_back({}, {"field": value}, show_absent=show_absent)
    assert repr(back) == repr({"field": value})


class Inner(BaseModel):
    """A part."""

    top: int | None = None
    tags: list[str] = []
    kind: Literal["a", "b", 3] | None = "a"


class Everything(BaseModel):
    """A field of every kind."""

    text: str
    other: str | None
    number: float
    day: date | None
    on: bool | None
    inner: Inner
    many: list[Inner]
    named: dict[str, float]
    either: str | list[Inner]


TYPED = st.builds(
    Everything,
    text=TEXTS,
    other=st.none() | TEXTS,
    number=st.floats(allow_nan=False, allow_infinity=False),
    either=st.one_of(
        TEXTS, st.lists(st.builds(Inner, tags=st.lists(TEXTS, max_size=2)), max_size=2)
    ),
    inner=st.builds(Inner, tags=st.lists(TEXTS, max_size=2)),
    many=st.lists(st.builds(Inner, tags=st.lists(TEXTS, max_size=2)), max_size=2),
    named=st.dictionaries(TEXTS, st.floats(allow_nan=False, allow_infinity=False), max_size=3),
)


@pytest.mark.drawn
@settings(max_examples=draws(60, 600))
@given(made=TYPED, show_absent=st.booleans())
def test_a_typed_value_comes_back_as_it_was(made, show_absent):
    """With a schema, too: unions, optional values, choices, days, nested lists."""
    value = made.model_dump(mode="json")
    schema = TypeAdapter(Everything).json_schema()
    assert repr(there_and_back(schema, value, show_absent=show_absent)) == repr(value)


def test_what_is_missing_stays_missing():
    """A field that the model left out is not made up: it is left out until somebody fills it in."""
    schema = TypeAdapter(Inner).json_schema()
    assert there_and_back(schema, {"top": None}, show_absent=True) == {"top": None}
    assert there_and_back(schema, ABSENT, show_absent=True) is ABSENT


def test_a_list_of_more_items_than_a_form_has_fields_is_kept():
    """A browser could not send thousands of fields: the form has none, and the items are kept."""
    long = {"total": "x", "rows": [f"line {number}" for number in range(5_000)]}
    assert filled(there_and_back({}, long), long) == long
    assert [part.kind for part in Fields({}).field({}, long).fields] == ["text", "some"]
    as_json = Fields({})
    as_json.as_json = "/rows"
    assert [part.kind for part in as_json.field({}, long).fields] == ["text", "json"]


def test_an_empty_form_has_no_tick_for_its_whole_value():
    """Only the fields say that they are missing: the form of a whole output begins empty."""
    schema = TypeAdapter(Card).json_schema()
    page = ROUND.render(whole=Fields(schema, show_absent=True).field(schema, ABSENT))
    assert page.count("missing</label>") == 1  # of `number`, which is required
    assert "leave out</label>" not in page
    assert there_and_back(schema, ABSENT, show_absent=True) is ABSENT


def test_a_union_without_constants_is_drawn_by_the_names_of_its_members():
    """The hints and the missing fields are those of the branch that the value follows."""
    branches = [
        {"type": "object", "properties": {"number": {"type": "string"}}},
        {"type": "object", "properties": {"iban": {"description": "IBAN"}, "bic": {}}},
    ]
    made = Fields({}, show_absent=True).field({"anyOf": branches}, {"iban": "DE02"})
    assert [(part.label, part.hint) for part in made.fields] == [("iban", "IBAN"), ("bic", "")]


class Card(BaseModel):
    """One way to pay."""

    kind: Literal["card"] = "card"
    number: str


class Bank(BaseModel):
    """Another way to pay."""

    kind: Literal["bank"] = "bank"
    iban: str
    urgent: bool = False


class Bill(BaseModel):
    """Params with a union whose branches are told apart by a member."""

    pay: Annotated[Card | Bank, Field(discriminator="kind")]


def test_another_branch_of_a_union_can_be_chosen():
    """The choice of a kind offers all kinds, and a button shows the fields of the chosen one."""
    paid: list[Any] = []

    def call(bill: Bill) -> str:
        paid.append(bill.pay)
        return "1" if len(paid) > 1 else "none"

    @entrypoint(checkpointer=InMemorySaver())
    def graph(_: str) -> Any:
        return retry_llm_call(call, Bill(pay=Bank(iban="DE02")), output=int)

    graph.invoke("", {"configurable": {"thread_id": "t1"}})
    with TestClient(create_app(graph, authorize=lambda _: "ada"), headers=SAME_SITE) as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("choice:/pay/kind", '"card"')
        form.press("params add:/pay")
        form = Form(sent(client, form).text)
        assert not [name for name, _ in form.controls if name.endswith(("/iban", "/urgent"))]
        form.fill("text:/pay/number", "4111")
        form.untick("none:/pay/number")
        sent(client, form)
    assert paid == [Bank(iban="DE02"), Card(number="4111")]


@pytest.mark.parametrize(
    ("control", "typed", "read"),
    [
        ("number", " 0.50 ", 0.5),
        ("number", "9007199254740993", 9007199254740993),
        ("number", "0,5", None),
        ("number", "true", None),
        ("number", "NaN", None),
        ("number", "", None),
        ("flag", "", None),
        ("date", "3 March", None),
        ("json", '{"a": 1, "a": 2}', None),
        ("json", "[1]", [1]),
        ("choice", "small", None),
        ("choice", '"small"', "small"),
        ("text", "a\r\nb", "a\nb"),
        ("crlf", "a\r\nb", "a\r\nb"),
        ("text", "null", "null"),
    ],
)
def test_what_is_typed_is_read_exactly_or_comes_back(control, typed, read):
    """A number is a number, and what is none comes back as it was typed, with the reason."""
    got = read_form([(f"{control}:", typed)])
    if read is None:
        assert isinstance(got, Unread)
        assert (got.text, bool(got.why)) == (typed, True)
    else:
        assert repr(got) == repr(read)


def test_a_value_beside_the_tick_for_none_is_asked_about():
    """A value that was typed where the tick for none is left is neither dropped nor taken."""
    assert isinstance(read_form([("text:", "x"), ("none:", "still-null")]), Unread)
    assert read_form([("text:", "x"), ("none:", "null")]) is None
    assert read_form([("text:", ""), ("none:", "still-null")]) is None


FIELDS: list[dict[str, Any]] = [
    {},
    {"type": "null"},
    {"type": "string"},
    {"type": "string", "format": "date"},
    {"type": "number"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "string", "enum": ["a", "b"]},
    {"enum": ["a", 1]},
    {"const": "x"},
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
]
KINDS: list[Any] = [
    None, True, False, 0, 1.0, -0.0, 10**30, "", "x", "7", " 7 ", "1\n2", "true", "null", "[1]",
    "2026-01-02", "a\r\nb", "\u202e", [], [1], ["a"], [{"a": "b"}], {}, {"a": "b"}, {"a": [1]},
    {"role": "user", "content": "x"}, {"role": ["user"], "content": 3},
]  # fmt: skip


@pytest.mark.parametrize("show_absent", [False, True])
@pytest.mark.parametrize("is_nullable", [False, True])
@pytest.mark.parametrize("field", FIELDS)
def test_a_value_of_another_kind_comes_back_as_it_was_or_is_refused(
    field, is_nullable, show_absent
):
    """A model's wrong value that nobody touched never becomes a value that nobody typed."""
    node = {"anyOf": [field, {"type": "null"}]} if is_nullable else field
    named = {"type": "object", "properties": {"f": node}}
    for value in KINDS:
        for schema, whole in (
            (node, value),
            (named, {"f": value}),
            ({**named, "required": ["f"]}, {"f": value}),
            ({"type": "array", "items": node}, [value]),
        ):
            back = there_and_back(schema, whole, show_absent=show_absent)
            assert has_unread(back) or repr(back) == repr(whole)


@pytest.mark.parametrize("text", ["42", "null", ""])
def test_the_form_for_a_text_begins_with_the_text(text):
    """A refused text is corrected as a text, even if it is JSON."""

    @entrypoint(checkpointer=InMemorySaver())
    def ask(prompt: str) -> str:
        return retry_llm_call(
            lambda prompt: text, prompt, output=Annotated[str, Field(min_length=5)]
        )

    config: Any = {"configurable": {"thread_id": "1"}}
    ask.invoke("A name?", config)
    (review,) = pending_reviews(ask, config)
    assert first_value(review, "output") == text
