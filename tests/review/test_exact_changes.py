"""A partly changed output is exactly the one that was meant, or the change is refused."""

import copy
import json
import random
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from jsonpointer import resolve_pointer
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from graph_retry import respond
from graph_retry._core.review.review_record import Refused
from tests.parts import draws
from tests.review.questions import judge, question


class Line(BaseModel):
    what: str
    cents: int = 0
    price: Decimal | None = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9
    who: str = "x"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: str = "wau"
    who: str = "x"


class Flat(BaseModel):
    street: str
    floor: int


class Boat(BaseModel):
    pier: str
    floor: int | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 1
    b: float = 0.5


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1


class Order(BaseModel):
    """A field of every kind that a model's JSON may hold."""

    name: str
    note: str | None = None
    n: int = 1
    big: int = 2**60 + 1
    ratio: float = 1.0
    ok: bool = False
    price: Decimal = Decimal("1.10")
    maybe: Decimal | None = None
    day: date | None = None
    line: Line
    lines: list[Line] = []
    pair: tuple[int, str] = (1, "a")
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] = Cat()
    home: Flat | Boat | None = None
    either: int | list[int] | None = None
    by: dict[str, Line] = {}
    meta: dict[str, Any] = {}
    strict: Strict = Strict()
    open: Open = Open()
    slash: str = Field(default="s", alias="a/b")
    tilde: Line | None = Field(default=None, alias="m~n")
    free: Any = None


GOOD: dict[str, list[Any]] = {
    "name": ["Ada", "null", "7", "", '{"a": 1}'],
    "note": [None, "late"],
    "n": [0, 2**53 + 1],
    "big": [2**60 + 3, 5],
    "ratio": [0.25, 2.0, 1e-9],
    "ok": [True, False],
    "price": ["9.99", "10.100", "0.12345678901234567890", 5],
    "maybe": [None, "3.30"],
    "day": [None, "2026-01-31"],
    "line": [{"what": "tea"}, {"cents": 5}, {"price": "7.70"}, {"price": None}],
    "lines": [[], [{"what": "a"}], [{"what": "a", "cents": 2}, {"what": "b", "price": "1.0"}]],
    "pair": [[2, "b"]],
    "pet": [{"kind": "dog"}, {"kind": "dog", "bark": "z"}, {"kind": "cat", "lives": 3}],
    "home": [None, {"street": "s", "floor": 1}, {"pier": "p"}, {"pier": "p", "floor": 2}],
    "either": [None, 3, [1, 2]],
    "by": [{"one": {"what": "n", "cents": 7}}, {"two": {"what": "m"}}, {}],
    "meta": [{"k": 1}, {"k": {"z": None}}, {"other": ["null"]}],
    "strict": [{"a": 2}, {"b": 1.0}],
    "open": [{"a": 3}, {"zzz": 1}],
    "a/b": ["new"],
    "m~n": [None, {"what": "w"}, {"what": "w", "cents": 3}],
    "free": [1, "x", {"a": 1}, [1], None],
}
OF_NO_FIELD: dict[str, list[Any]] = {
    "line": [{"wat": "x"}, {"what": "x", "cent": 1}],
    "lines": [[{"what": "a", "centz": 1}]],
    "pet": [{"kind": "cat", "bark": "z"}, {"livs": 1}, {"kind": "dog", "lives": 2}],
    "home": [{"peer": "x"}, {"street": "s", "pier": "p"}],
    "by": [{"one": {"centz": 7}}, {"three": {"what": "x", "prize": None}}],
    "strict": [{"aa": 1}],
    "m~n": [{"cent": 1, "what": "w"}],
    "nam": ["x"],
    "unknown": [1],
    "a~1b": ["x"],
    "m~0n": [None],
    "slash": ["x"],
}
WRONG: dict[str, list[Any]] = {
    "n": ["many", 1.5, None, []],
    "ratio": ["warm"],
    "ok": ["yep"],
    "price": ["dear"],
    "line": [{"cents": "lots"}, None, 7, {"price": {"a": 1}}],
    "lines": [[{"cents": 1}], [7], {"what": "a"}],
    "pair": [[1]],
    "pet": [{"kind": "cow"}],
    "home": [{"floor": "x"}, 7],
    "day": ["tomorrow"],
    "a/b": [None, 3],
    "m~n": [7],
}
TAKES_TEXT = {"name", "note", "free", "a/b", "maybe", "price", "day"}
ORDER = TypeAdapter(Order)


def merged(before: Any, after: Any) -> Any:
    """Merge as an edit does; an object with another tag or of another branch replaces."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    is_other = after.get("kind", before.get("kind")) != before.get("kind") and "kind" in before
    if (
        is_other
        or ("pier" in after and "street" in before)
        or ("street" in after and "pier" in before)
    ):
        return after
    return {**before, **{key: merged(before.get(key), item) for key, item in after.items()}}


def drawn(chance: random.Random) -> dict[str, Any]:
    """Draw an output as a model may have written it, in half of the cases a wrong one."""
    output: dict[str, Any] = {"name": "Bob", "line": {"what": "tea", "cents": 7}}
    for name in chance.sample(list(GOOD), chance.randint(0, 10)):
        output = merged(output, {name: copy.deepcopy(chance.choice(GOOD[name]))})
    if chance.random() < 0.5:
        name = chance.choice(list(WRONG))
        output[name] = copy.deepcopy(chance.choice(WRONG[name]))
    return output


@pytest.mark.drawn
@pytest.mark.parametrize("way", ["json", "text"])
def test_a_changed_output_is_the_one_that_was_meant_or_is_refused(way: str) -> None:
    """The oracle is pydantic, on the output that was read with the changes merged in.

    An object that is sent as text is no part, but the whole field.
    """
    chance = random.Random(way)
    for _ in range(draws(250, 6_000)):
        read = drawn(chance)
        kind = chance.choice([None, None, OF_NO_FIELD, WRONG])
        changes = {
            name: copy.deepcopy(chance.choice(GOOD[name]))
            for name in chance.sample(list(GOOD), chance.randint(1, 3))
        }
        if kind is not None:
            name = chance.choice(list(kind))
            changes[name] = copy.deepcopy(chance.choice(kind[name]))
        sent = {
            name: json.dumps(new) if way == "text" and name not in TAKES_TEXT else new
            for name, new in changes.items()
        }
        verdict = judge(
            respond(changes=sent), question(output=Order, read={"value": copy.deepcopy(read)})
        )
        as_text = {name: changes[name] for name in changes if sent[name] is not changes[name]}
        meant = {**merged(read, changes), **as_text}
        try:
            wanted = ORDER.validate_python(meant).model_dump(mode="json", by_alias=True)
        except ValidationError:
            wanted = None
        case = (read, sent, verdict)
        if wanted is None or kind is OF_NO_FIELD:
            assert isinstance(verdict, Refused), case
            assert verdict.issues, case
            for one in verdict.issues if kind is OF_NO_FIELD and wanted else ():
                resolve_pointer(sent if way == "json" else meant, one["path"])
        else:
            assert not isinstance(verdict, Refused), case
            output = verdict.decision["output"]
            assert json.dumps(output, sort_keys=True) == json.dumps(wanted, sort_keys=True), case


MAIL = {"to": "Bob", "text": "On Monday. aaa", "lines": ["Tuesday tea"]}


@pytest.mark.parametrize(
    ("replace", "after"),
    [
        ({"Monday": "Tuesday", "Tuesday": "Monday"}, ["On Tuesday. aaa", "Monday tea"]),
        ({"Monday": "Tuesday noon", "noon": "night"}, '"noon" is not in the output'),
        ({"aa": "b"}, '"aa" is in the output 2 times'),
        ({"On Monday": "At noon", "Monday. a": "x"}, "overlaps other words"),
        ({"Monday": r"\1 \g<0>"}, [r"On \1 \g<0>. aaa", "Tuesday tea"]),
        ({".": "!"}, ["On Monday! aaa", "Tuesday tea"]),
    ],
)
def test_words_are_replaced_at_once_and_only_where_they_were(replace: Any, after: Any) -> None:
    """Words that another replacement has put there are no words of the output."""
    asked = question(output=dict[str, Any], read={"value": MAIL})
    verdict = judge(respond(replace=replace), asked)
    if isinstance(after, str):
        assert isinstance(verdict, Refused)
        assert after in verdict.problem
    else:
        assert not isinstance(verdict, Refused)
        assert verdict.decision["output"] == {**MAIL, "text": after[0], "lines": [after[1]]}
