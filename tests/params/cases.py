"""Tables of params with the types map each needs, and the strict comparison they are held to."""

import dataclasses
import re
from collections import OrderedDict, deque
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import (
    AnyUrl,
    BaseModel,
    HttpUrl,
)

from tests.params.models import (
    ID,
    NOW,
    Aliased,
    Cat,
    Chat,
    Colour,
    Computed,
    Derived,
    Dog,
    Frozen,
    Ids,
    Level,
    Loose,
    Mood,
    Names,
    OldRequest,
    Open,
    Owner,
    Pair,
    Plain,
    Point,
    Request,
    Scalars,
    Shape,
    Shouting,
    Strict,
    Tool,
    Tree,
    Web,
)

SCALARS = Scalars(
    when=NOW.replace(tzinfo=UTC),
    day=NOW.date(),
    hour=NOW.time(),
    span=timedelta(days=-1, microseconds=7),
    id=ID,
    cost=Decimal("1.50"),
    data=b"plain",
    path=Path("a/b"),
    colour=Colour.RED,
    level=Level.LOW,
    mood=Mood.GLAD,
    limit=float("inf"),
    ids={3, 1},
    frozen=frozenset("ba"),
    pair=(1, "a"),
    many=(Decimal("0.1"),),
    by_id={1: ID},
)


CALLED = AIMessage(
    "",
    tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c1"}],
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    id="m1",
)
TALK: list[BaseMessage] = [
    SystemMessage("be brief"),
    HumanMessage([{"type": "text", "text": "hi"}], name="ann"),
    CALLED,
    ToolMessage("42", tool_call_id="c1", artifact={"n": 1}),
]
DERIVED = Derived(2)
assert DERIVED.thrice == 6

# (params type, value, the entries its types map must hold)
TYPED: list[tuple[Any, Any, dict[str, str]]] = [
    (None, None, {}),
    (str, "a\0b \u20ac", {}),
    (int, 2**80, {}),
    (float, float("nan"), {}),
    (bytes, b"\xff\x00", {"/value": "base64"}),
    (list[Decimal], [Decimal("1.10")], {}),
    (datetime, NOW, {}),
    (Colour, Colour.PAIR, {"/value": "tuple"}),
    (Cat | Dog, Dog(), {}),
    (dict[str, Any], {"n": 1, "d": NOW.date()}, {"/d": "date"}),
    (dict[str, int], {"": 1, "a/b~c": 2}, {}),
    (dict[int, str], {1: "a"}, {}),
    (Any, (1, 2), {"/value": "tuple"}),
    (Plain, Plain(text="x", tool=Tool(name="t", args={"k": [1, 2.5, None]})), {}),
    (Scalars, SCALARS, {}),
    (Loose, Loose(), {}),
    (Loose, Loose(a=NOW, b=NOW, c="7"), {"/a": "datetime", "/b": "datetime"}),
    (Loose, Loose(b=NOW.isoformat(), d=b"\xff"), {"/d": "base64"}),
    (Loose, Loose(a={"x": (1, {2})}), {"/a/x": "tuple", "/a/x/1": "set"}),
    (Loose, Loose(e=[NOW, NOW]), {"/e/-": "datetime"}),
    (Loose, Loose(e=[NOW, 1]), {"/e/0": "datetime"}),
    (Loose, Loose(h="red"), {}),
    (Loose, Loose(f=Shape(name="s"), g=[Shape()]), {}),
    (
        Loose,
        Loose(a=NOW.replace(tzinfo=ZoneInfo("Europe/Berlin"))),
        {"/a": "datetime[Europe/Berlin]"},
    ),
    (Aliased, Aliased.model_validate({"b": 1, "a": 2}), {}),
    (Computed, Computed(n=3, hidden="y", made=[1]), {}),
    (Open, Open.model_validate({"n": 2, "extra": "e"}), {}),
    (Open, Open.model_validate({"when": NOW}), {"/when": "datetime"}),
    (Strict, Strict(when=NOW, id=ID, ids={1}), {}),
    (Strict, Strict(when=NOW, id=ID, a=NOW), {}),
    (Owner[int], Owner[int](pet=Dog(), thing=1), {}),
    (Names, Names(["a"]), {}),
    (Ids, Ids({2, 1}), {}),
    (Tree, Tree(name="a", children=[Tree(name="b")]), {}),
    (Shouting, Shouting(text="hey"), {}),
    (
        Web,
        Web(
            url=HttpUrl("https://a.b/c"),
            any=AnyUrl("x://y"),
            ip=IPv4Address("127.0.0.1"),
            pattern=re.compile("a+"),
            queue=deque([1, 2]),
            ordered=OrderedDict(b=1, a=2),
            named=Pair(1, "a"),
            zone=1 + 2j,
        ),
        {},
    ),
    (Chat, Chat(any=TALK, last=CALLED), {}),
    (Chat, Chat(base=TALK), {"/base/-": "message"}),
    (list[BaseMessage], TALK, {"/value/-": "message"}),
    (Request, {"prompt": "p", "when": NOW, "tool": Tool(name="t")}, {}),
    (OldRequest, {"prompt": "p", "temperature": 0.1}, {}),
    (Point, Point(1.0, 2.0), {}),
    (Frozen, Frozen(NOW, Point(1.0)), {}),
    (Derived, DERIVED, {}),
]

# (value, types map); nothing is declared, but for an enum, which is typed by its class
UNTYPED: list[tuple[Any, dict[str, str]]] = [
    ({}, {}),
    ({"a": 1, "b": [True, None, 1.5], "c": {"d": "e"}}, {}),
    ({"a": NOW, "b": [NOW.date()]}, {"/a": "datetime", "/b/-": "date"}),
    ({"a": NOW.replace(tzinfo=timezone(timedelta(hours=2)))}, {"/a": "datetime"}),
    ({"a": time(1, 2), "b": timedelta(seconds=1.5)}, {"/a": "time", "/b": "timedelta"}),
    ({"a": ID, "b": Decimal("1E+3")}, {"/a": "uuid", "/b": "decimal"}),
    ({"a": b"text", "b": b"\xff"}, {"/a": "bytes", "/b": "base64"}),
    ({"a": (1, (2,)), "b": {1}}, {"/a": "tuple", "/a/1": "tuple", "/b": "set"}),
    ({"a": frozenset([NOW])}, {"/a": "frozenset", "/a/-": "datetime"}),
    ({"a": float("nan"), "b": -float("inf")}, {"/a": "float", "/b": "float"}),
    ({"a": 2**64, "b": -(2**70)}, {"/a": "int", "/b": "int"}),
    ({"a": Path("x/y")}, {"/a": "path"}),
    ({"a/b": {"~": (1, 2)}}, {"/a~1b/~0": "tuple"}),
    ({"messages": TALK}, {"/messages/-": "message"}),
    ({"m": AIMessageChunk("x")}, {"/m": "message"}),
    ("hello", {}),
    (5, {}),
    ([1, "a"], {}),
    ((1, 2), {"/value": "tuple"}),
    ([HumanMessage("a")], {"/value/-": "message"}),
    (Mood.GLAD, {}),
    (NOW, {"/value": "datetime"}),
]


def exact(one: Any, other: Any) -> bool:
    """Compare two values by type and content, all the way down; nan equals nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(exact(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(exact, one, other))
    if isinstance(one, BaseModel):
        return exact(dict(one), dict(other)) and one.__pydantic_private__ == (
            other.__pydantic_private__
        )
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(exact(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, datetime):
        same_zone = one.utcoffset() == other.utcoffset() and str(one.tzinfo) == str(other.tzinfo)
        return one == other and (same_zone or not isinstance(one.tzinfo, ZoneInfo))
    return bool(one == other) or str(one) == str(other) == "nan"
