"""Params types with every trap that pydantic and the standard library have to offer."""

import dataclasses
import re
import typing
from collections import OrderedDict, deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from functools import cached_property
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from uuid import UUID

import typing_extensions
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
)
from pydantic import (
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

T = TypeVar("T")
NOW = datetime.fromisoformat("2026-11-20T12:30:00.123456")
ID = UUID("12345678-1234-5678-1234-567812345678")


class Colour(Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(IntEnum):
    LOW = 1


class Mood(StrEnum):
    GLAD = "glad"


class Tool(BaseModel):
    name: str
    args: dict[str, Any] = {}


class Shape(BaseModel):
    name: str = "shape"


class Circle(Shape):
    radius: float = 1.0


class Ring(Circle):
    inner: Shape | None = None


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    when: datetime
    at: Point
    kind: Colour = Colour.RED


class Plain(BaseModel):
    text: str
    temperature: float = 0.7
    count: int = 3
    on: bool = True
    tags: list[str] = []
    tool: Tool | None = None


class Scalars(BaseModel):
    when: datetime
    day: date
    hour: time
    span: timedelta
    id: UUID
    cost: Decimal
    data: bytes
    path: Path
    colour: Colour
    level: Level
    mood: Mood
    limit: float
    ids: set[int]
    frozen: frozenset[str]
    pair: tuple[int, str]
    many: tuple[Decimal, ...]
    by_id: dict[int, UUID]


class Loose(BaseModel):
    a: Any = None
    b: datetime | str | None = None
    c: int | str | float | None = None
    d: bytes = b""
    e: list[Any] = []
    f: Shape = Shape()
    g: list[Shape] = []
    h: Colour | str = ""


class Aliased(BaseModel):
    a: int = Field(alias="b")
    b: int = Field(alias="a")
    inner: Tool = Field(default=Tool(name="t"), validation_alias="innerTool")


class Computed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    n: int
    hidden: str = Field("x", exclude=True)
    made: list[int] = Field(default_factory=list)

    @computed_field
    @property
    def double(self) -> int:
        return self.n * 2

    @field_serializer("n")
    def _n(self, n: int) -> str:
        return f"<{n}>"


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int = 1
    _note: str = PrivateAttr("same")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    when: datetime
    id: UUID
    ids: set[int] = set()
    a: datetime | str = ""


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    lives: int = 1


class Owner(BaseModel, Generic[T]):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    thing: T


class Names(RootModel[list[str]]):
    pass


class Ids(RootModel[set[int]]):
    pass


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class Shouting(BaseModel):
    text: str

    @field_validator("text", mode="before")
    @classmethod
    def _upper(cls, text: Any) -> Any:
        return text.upper() if isinstance(text, str) else text

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, data: Any) -> Any:
        return {"text": data} if isinstance(data, str) else data


class Web(BaseModel):
    url: HttpUrl
    any: AnyUrl
    ip: IPv4Address
    pattern: re.Pattern[str]
    queue: deque[int]
    ordered: OrderedDict[str, int]
    named: "Pair"
    zone: Annotated[complex, BeforeValidator(complex), PlainSerializer(str)]


class Pair(NamedTuple):
    x: int
    y: str


class Chat(BaseModel):
    any: list[AnyMessage] = []
    base: list[BaseMessage] = []
    last: AIMessage | None = None


class Request(typing_extensions.TypedDict):
    prompt: str
    when: NotRequired[datetime]
    tool: NotRequired[Tool]


class OldRequest(typing.TypedDict, total=False):
    prompt: typing.Required[str]
    temperature: float


@dataclasses.dataclass
class Derived:
    n: int
    twice: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.twice = self.n * 2

    @cached_property
    def thrice(self) -> int:
        return self.n * 3
