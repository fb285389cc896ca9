"""Values that a form or a browser damaged come back as the person meant them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.forms.originals import MAX_BOX, form_args, put_back
from graph_retry._core.review.review_record import Question, Refused
from graph_retry.lossless._ground import identical
from tests.review.questions import (
    TITLE,
    Color,
    Params,
    Style,
    judge,
    question,
    reset_form,
    through_browser,
)

BIG = 2**60 + 1
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def form(args: dict[str, Any]) -> dict[str, Any]:
    """Send a form as Agent Chat UI does."""
    return {"decisions": [{"type": "edit", "edited_action": {"name": TITLE, "args": args}}]}


def params_after(answer: Any, asked: Question) -> dict[str, Any]:
    """Return the params of an accepted answer."""
    verdict = judge(answer, asked)
    assert isinstance(verdict, Accepted), verdict
    assert verdict.params is not None
    return verdict.params


TYPED_TEXT: list[tuple[str, str, Any]] = [
    ("prompt", "true", "true"),
    ("prompt", "", ""),
    ("prompt", " 5 ", " 5 "),
    ("prompt", "null", "null"),
    ("temperature", "0.2", 0.2),
    ("temperature", " 2 ", 2.0),
    ("temperature", "1e-3", 0.001),
    ("top_k", "9", 9),
    ("top_k", '"9"', 9),
    ("stream", "true", True),
    ("stream", "True", True),
    ("stop", '["a", "b"]', ["a", "b"]),
    ("system", "Be brief.", "Be brief."),
    ("system", "7", "7"),
    ("seed", "3", 3),
    ("request_id", "12", 12),
    ("request_id", str(BIG + 1), BIG + 1),
    (
        "style",
        '{"tone": "loud", "length": 100, "ratio": 1}',
        {"tone": "loud", "length": 100, "ratio": 1.0},
    ),
    ("labels", '{"a": "1"}', {"a": "1"}),
    ("mode", "exact", "exact"),
    ("due", "2026-01-31", "2026-01-31"),
    ("price", "2.50", "2.50"),
    ("color", "blue", "blue"),
    ("code", "8", 8),
    ("code", "x8", "x8"),
]


@pytest.mark.parametrize(("name", "text", "value"), TYPED_TEXT)
@pytest.mark.parametrize("dialect", ["form", "ours"])
def test_text_is_read_by_the_type_of_its_field(
    name: str, text: str, value: Any, dialect: str
) -> None:
    """Text over a field becomes a value of that field's type; a text field keeps it as typed."""
    answer = form({name: text}) if dialect == "form" else {"type": "edit", "params": {name: text}}
    after = params_after(answer, question())
    assert identical(after[name], value)
    before = question().params
    assert all(identical(after[k], before[k]) for k in before if k != name)


@pytest.mark.parametrize(
    ("name", "text", "phrase"),
    [
        ("temperature", "warm", "expects a number"),
        ("temperature", "", "expects a number"),
        ("temperature", "1e999", "expects a number"),
        ("top_k", "[1]", "expects a number"),
        ("stream", "yes", "expects true or false"),
        ("stop", "a, b", "expects a JSON list"),
        ("stop", '["a"', "expects a JSON list"),
        ("style", "loud", "expects a JSON object"),
        ("seed", "three", "expects a number or null"),
        ("mode", "slow", "/mode"),
        ("due", "tomorrow", "/due"),
        ("top_k", "0", "/top_k"),
        ("style", '{"length": 5000}', "/style/length"),
        ("style", '{"tune": "loud"}', "style.tune"),
    ],
)
def test_unreadable_text_is_refused_by_field(name: str, text: str, phrase: str) -> None:
    """Text that is no value of the field is refused, naming the field and what it takes."""
    verdict = judge(form({name: text}), question())
    assert isinstance(verdict, Refused)
    assert phrase in verdict.problem
    assert name in verdict.problem


def test_all_bad_fields_are_named_at_once() -> None:
    """One refusal lists every field that cannot be read."""
    verdict = judge(form({"temperature": "warm", "stop": "x", "nope": 1}), question())
    assert isinstance(verdict, Refused)
    assert all(name in verdict.problem for name in ("`temperature`", "`stop`", '"nope"'))


@pytest.mark.parametrize("name", ["system", "seed"])
def test_null_clears_a_nullable_field_in_a_form(name: str) -> None:
    """`null` typed into a form clears a field that may be null, and only there."""
    asked = question(Params(system="Be brief.", seed=3))
    assert params_after(form({name: "null"}), asked)[name] is None


@pytest.mark.parametrize("name", ["system", "seed"])
@pytest.mark.parametrize("null", [None, "null"])
def test_null_clears_a_nullable_field_in_a_plain_edit(name: str, null: str | None) -> None:
    """As JSON's own or as the text that forms show for it: both clear the same fields."""
    asked = question(Params(system="Be brief.", seed=3))
    assert params_after({"type": "edit", "params": {name: null}}, asked)[name] is None


def test_the_text_null_stays_text_where_a_field_cannot_be_null() -> None:
    """A prompt may say "null"."""
    after = params_after({"type": "edit", "params": {"prompt": "null"}}, question())
    assert after["prompt"] == "null"


LONG = "Read the invoice.\r\n" * 1_000


@pytest.mark.parametrize("params", [{"text": LONG, "n": 1}, {"text": [LONG], "n": 1}])
def test_a_long_value_makes_no_giant_box_and_comes_back_whole(params: dict[str, Any]) -> None:
    """A form shows its beginning and a note; sent back untouched, all of it stays."""
    asked = question(params)
    args = form_args(asked.shown)
    assert len(args["text"]) < MAX_BOX + 200
    assert "more characters are not shown: leave the box as it is" in args["text"]
    for text in (args["text"], args["text"].replace("\r\n", "\n")):  # as text boxes do
        after = params_after(form({"text": text, "n": 2}), asked)
        assert after == {**params, "n": 2}


def test_many_long_values_make_no_giant_form_and_come_back_whole() -> None:
    """The form stands three times in a payload, so it is bounded as a whole."""
    asked = question(params := {f"field {number}": "x" * 1_000 for number in range(100)})
    assert len(json.dumps(build_payload(asked))) < 300_000 < 5 * len(json.dumps(params))
    after = params_after(form({**form_args(asked.shown), "field 0": "new"}), asked)
    assert after == {**params, "field 0": "new"}


def test_a_box_shown_in_part_is_replaced_whole_or_not_at_all() -> None:
    """Nobody loses the end of a prompt by changing its beginning."""
    asked = question({"text": LONG, "n": 1})
    shown = form_args(asked.shown)["text"]
    verdict = judge(form({"text": f"Please. {shown}"}), asked)
    assert isinstance(verdict, Refused)
    assert "`text` was shown in part: replace the whole text" in verdict.problem
    assert params_after(form({"text": "Short."}), asked)["text"] == "Short."
    assert (
        params_after({"type": "edit", "params": {"text": f"{LONG}."}}, asked)["text"] == f"{LONG}."
    )


HARD = Params(
    temperature=2.0, system="null", seed=BIG, ids=[BIG, BIG + 1, 3], labels={"a": "1"}, code="7"
)


@pytest.mark.parametrize("params", [Params(), HARD])
@pytest.mark.parametrize(
    "damage", [lambda a: a, through_browser, reset_form, lambda a: reset_form(through_browser(a))]
)
def test_an_untouched_form_changes_nothing(params: Params, damage: Any) -> None:
    """A form that comes back unedited is an approval, whatever the browser did to its numbers."""
    asked = question(params)
    verdict = judge(form(damage(form_args(asked.shown))), asked)
    assert isinstance(verdict, Accepted), verdict
    assert verdict.decision == {"type": "approve"}
    assert identical(verdict.params, asked.params)


@pytest.mark.parametrize("damage", [through_browser, reset_form])
def test_one_edit_in_a_damaged_form_changes_one_field(damage: Any) -> None:
    """Beside the one edited field everything keeps all its digits and types."""
    asked = question(HARD)
    args = {**damage(form_args(asked.shown)), "top_k": "9"}
    verdict = judge(form(args), asked)
    assert isinstance(verdict, Accepted)
    assert verdict.decision == {"type": "edit", "params": {"top_k": 9}}
    assert identical(verdict.params, {**asked.params, "top_k": 9})


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=5))
def test_any_untouched_form_changes_nothing(params: dict[str, Any]) -> None:
    """Whatever untyped params hold, showing them in a browser and sending them back is no edit."""
    asked = question(params, codec=ParamsCodec(dict))
    for damage in (through_browser, reset_form):
        verdict = judge(form(damage(form_args(asked.shown))), asked)
        assert isinstance(verdict, Accepted), verdict
        assert verdict.decision == {"type": "approve"}


@given(JSON, JSON)
def test_an_exact_answer_is_never_rounded(shown: Any, value: Any) -> None:
    """Numbers that JavaScript cannot have written are taken as they are."""
    result = put_back(value, shown, shown)
    assert identical(result, value) or identical(through_browser(result), through_browser(value))


@pytest.mark.parametrize("shown", [[BIG, 5, 2**61 + 1], [BIG, BIG + 1, 3]])
def test_digits_lost_in_a_shortened_list_are_not_guessed(shown: list[int]) -> None:
    """Nobody can tell which item it was, so the person is asked for all digits."""
    asked = question(Params(ids=shown))
    verdict = judge(form({"ids": json.dumps(through_browser(shown[1:]))}), asked)
    assert isinstance(verdict, Refused)
    assert "`ids`: the number" in verdict.problem
    assert "lost digits. Send all digits." in verdict.problem
    exact = {"type": "edit", "params": {"ids": shown[1:]}}
    assert params_after(exact, asked)["ids"] == shown[1:]


def test_a_shortened_list_of_common_numbers_is_taken_as_it_came() -> None:
    """Doubles hold whole numbers up to 2**53, so nothing is lost there."""
    asked = question({"list": [1, 1.0, 2]})
    assert identical(params_after(form({"list": "[1, 2]"}), asked)["list"], [1, 2])


UNTYPED = {"model": "m", "n": 0.7, "flag": True, "list": [1], "more": {"a": 1}, "none": None}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("model", "0.7", "0.7"),
        ("model", "null", "null"),
        ("n", "0.2", 0.2),
        ("flag", "false", False),
        ("list", "[2]", [2]),
        ("more", '{"b": 2}', {"b": 2}),
        ("none", "null", None),
        ("none", "5", "5"),
    ],
)
def test_untyped_params_take_the_kind_that_was_shown(name: str, text: str, value: Any) -> None:
    """Without a type, what stood in the box decides how new text is read."""
    answer = form({**reset_form(form_args(UNTYPED)), name: text})
    assert identical(params_after(answer, question(UNTYPED))[name], value)


@pytest.mark.parametrize(("name", "text"), [("n", "warm"), ("flag", "2"), ("list", "{}")])
def test_untyped_params_refuse_another_kind_in_a_form(name: str, text: str) -> None:
    """A typo in a form does not turn a number into text."""
    verdict = judge(form({name: text}), question(UNTYPED))
    assert isinstance(verdict, Refused)
    assert f"`{name}`" in verdict.problem


def test_untyped_params_take_another_kind_as_json() -> None:
    """JSON says what kind a value is, so it may change the kind, and new fields may be added."""
    answer = {"type": "edit", "params": {"n": [0.2], "new": "x"}}
    after = params_after(answer, question(UNTYPED))
    assert after == {**UNTYPED, "n": [0.2], "new": "x"}


def test_types_survive_an_edit() -> None:
    """An edited model decodes to its own types again."""
    asked = question()
    verdict = judge(form({"price": "2.50", "color": "blue", "style": '{"tone": "x"}'}), asked)
    assert isinstance(verdict, Accepted)
    assert verdict.params is not None
    after = asked.codec.decode(verdict.params, verdict.types)
    assert after.color is Color.BLUE
    assert str(after.price) == "2.50"
    assert after.style == Style(tone="x")
