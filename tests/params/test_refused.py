"""What cannot stand in graph state is refused at entry, by field, without showing its value."""

import asyncio
import dataclasses
import io
import math
import re
import threading
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any

import httpx
import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    Secret,
    SecretBytes,
    SecretStr,
    field_validator,
)
from typing_extensions import TypedDict

from graph_retry._core.params.codec import ParamsCodec, ParamsInvalid
from tests.params.models import Circle, Colour, Computed, Loose, Plain, Point, Shape, Tool

LOOP: dict[str, Any] = {}
LOOP["a"] = {"b": LOOP}


class Odd(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta(hours=1)

    def dst(self, dt: datetime | None) -> timedelta:
        return timedelta()


class Words(str):
    __slots__ = ()


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    client: Any = None
    declared: httpx.Client | None = None
    deep: dict[str, list[Any]] = {}
    call: Callable[[], int] | None = None


class Remembering(BaseModel):
    n: int = 1
    _calls: list[int] = PrivateAttr(default_factory=list)


class Growing(BaseModel):
    text: str

    @field_validator("text", mode="before")
    @classmethod
    def _more(cls, text: str) -> str:
        return text + "!"


@dataclasses.dataclass
class Unmakeable:
    event: threading.Event


class Unsaid(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    hidden: threading.Event | None = Field(default=None, exclude=True)


@dataclasses.dataclass
class Made:
    n: int
    factor: dataclasses.InitVar[int]


@dataclasses.dataclass
class Bag:
    n: int = 0
    items: list[int] = dataclasses.field(default_factory=list)


class Ask(TypedDict):
    prompt: str


def remembering() -> Remembering:
    value = Remembering()
    value._calls.append(1)
    return value


def local_model() -> BaseModel:
    class Local(BaseModel):
        n: int = 1

    return Local()


# (value, params type or None for the function form, error, words of the message)
REFUSED: list[tuple[Any, Any, type[Exception], str]] = [
    ({"key": SecretStr("hunter2")}, None, ValueError, "`params.key` is a `SecretStr`"),
    ({"a": [{"b": SecretBytes(b"hunter2")}]}, None, ValueError, "`params.a[0].b`"),
    ({"a": Secret[str]("hunter2")}, None, ValueError, "capture it in the function"),
    (SecretStr("hunter2"), None, ValueError, "`params.value`"),
    (Holder(deep={"a": [SecretStr("hunter2")]}), None, ValueError, "`params.deep.a[0]`"),
    (Holder(client=SecretStr("hunter2")), None, ValueError, "`params.client`"),
    ({"f": len}, None, TypeError, "`params.f` is a `builtin_function_or_method`"),
    ({"f": lambda: 1}, None, TypeError, "`params.f` is a `function`"),
    ({"f": Plain}, None, TypeError, "`params.f`"),
    ({"f": math}, None, TypeError, "`params.f` is a `module`"),
    ({"f": io.StringIO("x")}, None, TypeError, "`params.f` is a `_io.StringIO`"),
    ({"f": threading.Lock()}, None, TypeError, "`params.f` is a `_thread.lock`"),
    ({"f": (i for i in "ab")}, None, TypeError, "`params.f` is a `generator`"),
    ({"f": iter([1])}, None, TypeError, "`params.f`"),
    ({"f": ValueError("x")}, None, TypeError, "`params.f` is a `ValueError`"),
    ({"f": object()}, None, TypeError, "`params.f` is an `object`"),
    ({"f": asyncio.Event()}, None, TypeError, "`params.f` is an `asyncio.locks.Event`"),
    ({"f": 1j}, None, TypeError, "`params.f` is a `complex`"),
    ({"f": bytearray(b"x")}, None, TypeError, "`params.f` is a `bytearray`"),
    ({"f": OrderedDict(a=1)}, None, TypeError, "`params.f` is a `collections.OrderedDict`"),
    ({"f": defaultdict(list)}, None, TypeError, "`params.f` is a `collections.defaultdict`"),
    ({"f": namedtuple("Pt", "x")(1)}, None, TypeError, "Pt`"),  # noqa: PYI024
    ({"f": Words("x")}, None, TypeError, "Words`"),
    ({"f": httpx.Client()}, None, TypeError, "`params.f` is a `httpx.Client`"),
    (Holder(client=httpx.Client()), None, TypeError, "`params.client` is a `httpx.Client`"),
    (Holder(declared=httpx.Client()), Holder, TypeError, "`params.declared` is a `httpx.Client`"),
    (Holder(deep={"x": [object()]}), Holder, TypeError, "`params.deep.x[0]`"),
    (Holder(call=lambda: 1), Holder, TypeError, "`params.call` is a `function`"),
    (Unsaid(hidden=threading.Event()), Unsaid, TypeError, "`params.hidden`"),
    ({1: "a"}, None, TypeError, "`params` has keys that are not `str`"),
    ({"a": {None: 1}}, None, TypeError, "`params.a` has keys"),
    ({"a": {(1, 2): 1}}, None, TypeError, "`params.a` has keys"),
    ({"a": {1: 1, "1": 2}}, None, TypeError, "`params.a` has keys"),
    ({"a": {Colour.RED: 1}}, None, TypeError, "`params.a` has keys"),
    (Holder(client={1: "a"}), Holder, ValueError, "`params.client` would come back changed"),
    (LOOP, None, ValueError, "contains itself"),
    ({"a": "\ud800"}, None, ValueError, "`params.a` holds a lone surrogate"),
    ({"a": {"\ud800": 1}}, None, ValueError, "lone surrogate"),
    ({"a": datetime.now(Odd())}, None, ValueError, "`params.a` has the time zone"),
    ({"m": local_model()}, None, TypeError, "Local`, which cannot be saved: annotate"),
    ({"m": Plain(text="x")}, None, TypeError, "takes `params_type`"),
    ({"m": [Point(1.0)]}, None, TypeError, "`params.m[0]` is a `tests.params.models.Point`"),
    ({"m": Colour.RED}, dict[str, Any], TypeError, "`params.m` is a `tests.params.models.Colour`"),
    ((Colour.RED,), Any, TypeError, "`params.value[0]` is a `tests.params.models.Colour`"),
    ({"m": Unmakeable(threading.Event())}, None, TypeError, "`params.m` is a"),
    (Holder(client=Plain(text="x")), None, ValueError, "`params.client` would come back changed"),
    (Loose(f=Circle()), None, ValueError, "`params.f.radius` would come back changed"),
    (Loose(g=[Shape(), Circle()]), Loose, ValueError, "`params.g[1].radius` would come back"),
    (Loose(e=[Shape(), Shape()]), Loose, ValueError, "`params.e` would come back changed"),
    (Loose(h=Colour.RED), Loose, ValueError, "`params.h` would come back changed"),
    (Circle(), Shape, ValueError, "`params.radius` would come back changed"),
    (remembering(), None, ValueError, "`params._calls` is not saved, because nobody can give it"),
    (Growing(text="a"), Growing, ValueError, "`params.text` would come back changed"),
    (Made(1, 2), Made, ValueError, "`params.factor`"),
    (Point(x="near"), Point, ValueError, "`params.x`"),  # type: ignore[arg-type]
    (Bag(items=(1,)), Bag, ValueError, "`params.items` would come back changed"),  # type: ignore[arg-type]
    (Plain.model_construct(text=5), Plain, ValueError, "`params.text`"),
    (Computed.model_construct(n="x"), Computed, ValueError, "`params.n`"),
    ({"prompt": "p", "more": 1}, Ask, ValueError, "`params.more` would come back changed"),
    ({"prompt": 1}, Ask, ValueError, "`params.prompt`"),
    ({"text": "x"}, Plain, TypeError, "params must be a `tests.params.models.Plain`, not a `dict`"),
    (Tool(name="x"), Shape, TypeError, "must be a `tests.params.models.Shape`"),
    (None, Plain, TypeError, "not a `NoneType`"),
    ("x", None.__class__, TypeError, "must be a `NoneType`, not a `str`"),
    ("x", int, ValueError, "`params.value`"),
    ("5", int, ValueError, "`params.value` would come back changed"),
]


@pytest.mark.parametrize(("value", "params_type", "error", "words"), REFUSED)
def test_unstorable_params_are_refused(
    value: Any, params_type: Any, error: type[Exception], words: str
) -> None:
    """One error of the right class names the field, and never shows a secret."""
    codec = ParamsCodec.for_value(value) if params_type is None else ParamsCodec(params_type)
    with pytest.raises(error, match=re.escape(words)) as caught:
        codec.encode(value)
    assert "hunter2" not in str(caught.value)
    owner = "the params returned by hook `bump`"
    with pytest.raises(error, match=re.escape(owner)):
        codec.encode(value, owner=owner)


def test_a_refused_generator_is_not_consumed() -> None:
    """Looking at a value never uses it up."""
    items = (i for i in "ab")
    with pytest.raises(TypeError):
        ParamsCodec(dict).encode({"items": items})
    assert list(items) == ["a", "b"]


class Login(BaseModel):
    user: str
    password: SecretStr | None = None


class Account(BaseModel):
    logins: list[Login] = []


class Unbuildable:
    pass


@pytest.mark.parametrize(
    ("params_type", "error", "words"),
    [
        (Login, ValueError, "`params.password` of `tests.params.test_refused.Login`"),
        (Account, ValueError, "Login.password"),
        (SecretStr, ValueError, "secret"),
        (Unbuildable, TypeError, "cannot be built from JSON"),
        (dict[str, Unbuildable], TypeError, "cannot be built from JSON"),
        ("Nope", TypeError, "cannot be built from JSON"),
        (Tool(name="t"), TypeError, "pass the class of the params"),
        (lambda params: params, TypeError, "pass the class of the params"),
    ],
)
def test_unusable_types_are_refused_early(params_type: Any, error: Any, words: str) -> None:
    """A type with a declared secret, or one JSON cannot make, fails when the codec is made."""
    with pytest.raises(error, match=re.escape(words)):
        ParamsCodec(params_type)


def test_a_tag_that_names_a_class_makes_nothing() -> None:
    """What somebody wrote into state is no way to a class, a function or a module."""
    for tag in (
        "antigravity:geohash",
        "os:system",
        "builtins:eval",
        "builtins:int",
        ":",
        "tests.params.models:Plain",
        "nonsense",
    ):
        with pytest.raises(ParamsInvalid) as caught:
            ParamsCodec(dict).decode({"x": "1"}, {"/x": tag})
        assert [issue["path"] for issue in caught.value.issues] == ["/x"]
        assert ParamsCodec(Holder).decode({"client": "1"}, {"/client": tag}) == Holder(client="1")
