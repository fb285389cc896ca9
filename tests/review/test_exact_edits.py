"""An edit is applied exactly, or refused with a reason that names the field: never half of it."""

import copy
import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from graph_retry._core.ground.pictures import noted
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.tagged_json import differences
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.review_record import Refused
from tests.parts import draws
from tests.review.questions import Color, judge, question, reset_form, through_browser

PICTURE = "data:image/png;base64," + "iVBORw0KGgoA" * 20


class Inner(BaseModel):
    name: str = "a"
    size: int = 1
    ratio: float = 1.0
    when: date | None = None
    price: Decimal = Decimal("1.50")
    tags: list[str] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: str = "wau"


class Wide(BaseModel):
    """A field of every kind."""

    text: str = "hello"
    n: int = 3
    big: int = 2**60 + 1
    ratio: float = 1.0
    on: bool = True
    maybe: str | None = None
    inner: Inner = Inner(name="x")
    opt: Inner | None = None
    items: list[Inner] = [Inner(), Inner(name="b")]
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] = Cat()
    other_pet: Cat | Dog = Dog(bark="x")
    color: Color = Color.RED
    day: date = date(2026, 1, 2)
    at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    wait: timedelta = timedelta(hours=1)
    price: Decimal = Decimal("10.10")
    raw: bytes = b"abc"
    ident: UUID = UUID(int=7)
    by: dict[str, Inner] = {"one": Inner()}
    nums: list[int] = [1, 2, 3]
    pair: tuple[int, str] = (1, "z")
    chosen: set[str] = {"p", "q"}
    messages: list[AnyMessage] = [
        SystemMessage("be brief"),
        HumanMessage([{"type": "image_url", "image_url": {"url": PICTURE}}]),
    ]


NEW: dict[str, list[Any]] = {
    "text": ["world", "null", "1", "true", '{"a":1}', "", " x ", "a\nb"],
    "n": [0, 7, -1],
    "ratio": [0.5, 2.0, 1e-7],
    "on": [False],
    "maybe": ["x", "1"],
    "opt": [Inner(size=4)],
    "items": [[Inner()], [], [Inner(name="q"), Inner(name="b"), Inner(size=9)]],
    "pet": [Dog(), Cat(lives=3), Dog(bark="z")],
    "other_pet": [Cat(), Dog(bark="y"), Cat(lives=2)],
    "color": [Color.BLUE],
    "day": [date(2025, 5, 5)],
    "at": [datetime(2025, 1, 1, tzinfo=UTC)],
    "wait": [timedelta(minutes=3)],
    "price": [Decimal("9.99"), Decimal("10.100"), Decimal(0)],
    "raw": [b"xyz", b""],
    "ident": [UUID(int=8)],
    "nums": [[1], [], [1, 2, 3, 4], [3, 2, 1]],
    "pair": [(2, "y")],
    "chosen": [{"p"}, set()],
    "messages": [[HumanMessage("new")], [*Wide().messages, AIMessage("ok")]],
    "inner": [Inner(name="y", size=8), Inner(name="x", tags=["t"], when=date(2020, 1, 1))],
    "by": [{"one": Inner(name="ny")}, {"one": Inner(), "two": Inner(size=2)}],
}
CODEC = ParamsCodec(Wide)


@pytest.mark.drawn
@pytest.mark.parametrize("channel", ["json", "text", "chat", "inbox", "reset"])
@pytest.mark.slow
def test_what_a_person_wants_is_what_the_model_gets(channel: str) -> None:
    """Of random params, random changes in the shape of each client give exactly those params."""
    chance = random.Random(channel)
    for _ in range(draws(60, 1_500)):
        before = Wide()
        for name in chance.sample(list(NEW), 4):
            setattr(before, name, copy.deepcopy(chance.choice(NEW[name])))
        before.messages = Wide().messages  # a note can only bring back a picture that was shown
        wanted = before.model_copy(deep=True)
        changed = chance.sample(list(NEW), chance.randint(1, 3))
        for name in changed:
            new = copy.deepcopy(chance.choice(NEW[name]))
            new = {**before.by, **new} if name == "by" else new  # objects are merged
            setattr(wanted, name, new)
        asked = question(before, codec=CODEC)
        verdict = judge(sent(channel, asked, CODEC.encode(wanted).view, changed), asked)
        assert not isinstance(verdict, Refused), (changed, verdict)
        assert verdict.params is not None
        assert differences(wanted, CODEC.decode(verdict.params, verdict.types)) == []


def sent(channel: str, asked: Any, wanted: dict[str, Any], changed: list[str]) -> Any:
    """Return the answer that a client sends for these changes."""
    new = {name: wanted[name] for name in changed}
    if channel == "json":
        return {"type": "edit", "params": new}
    if channel == "text":
        return json.dumps({"type": "edit", "params": new})
    request = build_payload(asked)["action_request"]
    typed = {
        name: part if isinstance(part, str) else json.dumps(part) for name, part in new.items()
    }
    args = {**through_browser(request["args"]), **noted(typed)}
    if channel == "reset":
        args = reset_form(args)
    if channel == "inbox":
        return [{"type": "edit", "args": {"action": request["action"], "args": args}}]
    edited = {"name": request["action"], "args": args}
    return {"decisions": [{"type": "edit", "edited_action": edited}]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"inner": {"sise": 2}}, "inner.sise"),
        ({"by": {"one": {"nam": "y"}}}, "by.one.nam"),
        ({"items": [{"sise": 2}]}, "items.0.sise"),
        ({"pet": {"bark": "z"}}, "/pet"),
        ({"pet": {"kind": "dog", "lives": 3}}, "pet.lives"),
        ({"day": "tomorrow"}, "/day"),
        ({"inner": {"size": "big"}}, "inner.size"),
        ({"n": None}, "/n"),
        ({"messages": [{"content": "who?"}]}, "messages"),
        ({"n": 5, "inner": {"price": "dear"}}, "/inner/price"),
    ],
)
def test_a_refusal_names_the_field(changes: dict[str, Any], field: str) -> None:
    """Nothing of such an edit is applied."""
    verdict = judge({"type": "edit", "params": changes}, question(Wide(), codec=CODEC))
    assert isinstance(verdict, Refused)
    assert field in verdict.problem


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (0, False), (True, 1), ([1, 0], [True, False])]
)
def test_truth_is_no_number(before: Any, after: Any) -> None:
    """Python calls them equal, and so the edit was taken for an approval."""
    verdict = judge({"type": "edit", "params": {"n": after}}, question({"n": before}))
    assert not isinstance(verdict, Refused)
    assert json.dumps(verdict.params) == json.dumps({"n": after})


def hidden(text: str) -> str:
    """Redact two names."""
    return text.replace("Ada", "***").replace("Bea", "***")


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        (["Ada", "Bob"], ["***"], ["Ada"]),
        (["Ada", "Bob"], ["Bob", "***"], ["Bob", "Ada"]),
        (["Ada", "Bea", "C"], ["***", "***", "D"], ["Ada", "Bea", "D"]),
        (["Ada", "Ada", "C"], ["***", "C"], ["Ada", "C"]),
        (["Ada", "Bea", "C"], ["***", "C"], None),
        (["Ada", "Bea", "C"], ["C", "***", "***"], None),
        ([{"n": "Ada", "x": 1}, {"n": "C"}], [{"n": "***", "x": 2}], None),
        ("Dear Ada, hi", "Dear ***, hello", None),
        ("Dear Ada, hi", "Dear Bob, hello", "Dear Bob, hello"),
        ("Bob", "***", None),
    ],
)
def test_a_redactors_word_never_reaches_the_model(before: Any, typed: Any, after: Any) -> None:
    """The original comes back where it is known, and otherwise the edit is refused."""
    asked = question({"to": before, "from": "Ada"}, redact=hidden)
    verdict = judge({"type": "edit", "params": {"to": typed}}, asked)
    if after is None:
        assert isinstance(verdict, Refused)
        assert '`to` has "***"' in verdict.problem
    else:
        assert not isinstance(verdict, Refused)
        assert verdict.params == {"to": after, "from": "Ada"}
