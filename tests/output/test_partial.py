"""What of a half-written answer is certain: later text cannot make it valid any more."""

import json
import random
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema
from typing_extensions import TypedDict

from bench import false_stops
from graph_retry._core.output.build import build_validator
from graph_retry._core.output.partial import growing
from graph_retry._core.output.partial.early_end import Watch
from graph_retry.output import heuristic


class Item(BaseModel):
    """An element."""

    model_config = ConfigDict(extra="forbid")

    id: int
    kind: Literal["book", "film"] = "book"
    code: str = Field(default="A1", pattern="^[A-Z]")
    tags: list[str] = Field(default=[], max_length=2)
    other: "Item | list[int] | None" = None


@dataclass
class Place:
    """A dataclass among models."""

    city: str
    point: tuple[int, int]


class Row(TypedDict):
    """A typed dict."""

    n: int


class Order(BaseModel):
    """What is asked for."""

    items: list[Item] = []
    place: Place | None = None
    rows: dict[str, Row] = {}
    total: Annotated[float, Field(ge=0, alias="sum")] = 0


def watched(text, output, level="standard"):
    """Stream a text one character at a time, judged at each; return the watch at its end."""
    watch = Watch(build_validator(output), level)
    for character in text:
        watch.add(character)
        if watch.failure is not None:
            break
    return watch


@pytest.fixture
def at_every_character(monkeypatch):
    """Read the text again after every character."""
    monkeypatch.setattr(growing, "_STEP", 1)
    monkeypatch.setattr(growing, "_GROWTH", 10**9)


CERTAIN = [
    ('{"items": [{"id": "x", "kind": "', "/items/0/id"),  # a wrong type
    ('{"items": [{"kind": "song", "id": 1', "/items/0/kind"),  # not in the enum
    ('{"items": [{"code": "a1", "id": 1', "/items/0/code"),  # a pattern
    ('{"items": [{"colour": 1, "id": 1', "/items/0/colour"),  # a forbidden field
    ('{"items": [{"tags": ["a", "b", "c", "', "/items/0/tags"),  # too many
    ('{"items": [{"id": 1}, {"kind": "book"}, {', "/items/1/id"),  # a whole element without it
    ('{"items": [{"id": 1, "other": {"id": "x"}, "kind": "', "/items/0/other/id"),  # each branch
    ('{"place": {"city": 5, "point": [', "/place/city"),  # in a dataclass
    ('{"place": {"point": [1, 2, 3, 4', "/place/point"),  # one more than the tuple has
    ('{"rows": {"a": {"n": "x", "m": 1', "/rows/a/n"),  # in a typed dict
    ('{"items": {"a": 1}, "rows": {', "/items"),  # an object for a list
    ('{"items": [{"kind": {"a": 1}, "id": 1', "/items/0/kind"),  # an object for a word
    ('[{"id": 1}, {', ""),  # a list for an object
]


@pytest.mark.usefixtures("at_every_character")
@pytest.mark.parametrize("as_schema", [False, True], ids=["type", "schema"])
@pytest.mark.parametrize(("text", "path"), CERTAIN)
def test_what_cannot_be_mended_stops(text, path, as_schema):
    """The answer is lost as soon as the next part has begun, and not before."""
    output = TypeAdapter(Order).json_schema() if as_schema else Order
    assert watched(text[:-1], output).failure is None
    watch = watched(text, output)
    assert watch.failure is not None
    assert watch.failure["kind"] == "invalid_schema"
    assert watch.issues[0]["path"].startswith(path.rpartition("/")[0])
    if not as_schema:
        assert watch.issues[0]["path"] == path


class Coerced(BaseModel):
    """A field that is changed before it is validated."""

    n: Annotated[int, BeforeValidator(lambda value: 1)]
    m: int = 0


class Aliased(BaseModel):
    """A field with two keys, of which the first one wins."""

    n: int = Field(validation_alias=AliasChoices("n", "number"))
    m: int = 0


class Named(BaseModel):
    """A field that is read by its name, unless its alias is there."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    n: int = Field(alias="number", default=0)
    m: int = 0


class Mended(BaseModel):
    """A model that takes anything."""

    n: int = 0
    m: int = 0

    @model_validator(mode="before")
    @classmethod
    def _anything(cls, _value: Any) -> Any:
        return {}


class Dependent(BaseModel):
    """A field whose validator looks at the field before it."""

    m: int = 0
    n: int = 0

    @field_validator("n")
    @classmethod
    def _check(cls, value: int, info: Any) -> int:
        assert info.data["m"] == 1
        return value


class Shelf(RootModel[list[Item]]):
    """A list by another name."""


class Text(BaseModel):
    """A branch whose tag is the name of its field."""

    kind: Literal["text"]
    text: str = ""
    size: int


class Link(BaseModel):
    """Another branch."""

    kind: Literal["link"]


Block = Annotated[Text | Link, Field(discriminator="kind")]


class Split(BaseModel):
    """A list that is changed before its elements are validated."""

    tags: Annotated[list[int], BeforeValidator(lambda given: [1])] = []
    n: int = 0


class Steps(list[int]):
    """A list that is validated in two steps, of which the second one takes anything."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:
        """Chain two schemas."""
        anything = core_schema.no_info_plain_validator_function(lambda given: cls())
        return core_schema.chain_schema([handler(list[Any]), anything])


NEIGHBOURS = {"if": {"required": ["c"]}, "else": {"properties": {"a": {"const": 0}}}}
NESTED = {"type": "object", "properties": {"b": {"properties": {"c": {"type": "integer"}}}}}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
"""It has no `prefixItems`."""
UNCERTAIN = [
    ('{"place": {"point": {"x": {"y": [', Order),  # no list, as yet
    ('{"rows": [{"a": {"n": [', Order),
    ('{"items": {"a": {"id": "x", "kind": 1', Order),
    ('{"n": "x", "m": 1}', Coerced),
    ('{"number": "x", "m": 1, "n": 2}', Aliased),
    ('{"n": "x", "m": 1, "number": 2}', Named),
    ('{"n": "x", "m": 1}', Mended),
    ('{"m": 1, "n": 2, "x": 3}', Dependent),
    ('{"a": [0, 1, "x", 5], "b": []}', dict[str, Steps]),
    ('{"id": 1, "id": 1, "kind": "film"}', Item),  # a key that is there twice, and alike
    ('{"id": 7, "tags": ["a"], "id": 7}', Item),
    ('{"other": {"id": 1}, "kind": "film", "other": {"id": 1}, "id": 1}', Item),
    ('{"id": "7", "kind": "film"}', Item),  # a number in quotes is converted
    ('{"id": 1}\n{"id": 2}\n{"id": 3}', Shelf),  # documents in a row are a list
    ('{"id": 1}\n{"id": 2}', list[Item]),
    ('[1] says so: {"id": 1, "kind": "film"}', Item),  # a citation
    ('Of {"id": "x", "kind": "film"} I make {"id": 1}', Item),  # in prose
    ("{'id': 1, 'kind': 'film'}", Item),  # a slip that is repaired
    ('{"id": 1, // see "kind": 5, "x": 6\n "kind": "film"}', Item),
    ('<think>{"id": "x", "kind": 1}</think>\n```json\n{"id": 1}\n```', Item),
    ('<think>{"id": "x", "kind": 1}', Item),  # that may go on
    ('{"kind": "book", "id": 1, "n": 1}', lambda value: value),
    ('{"kind": "book", "id": 1, "n": 1}', heuristic("object")),
    ('"{\\"id\\": \\"x\\", \\"kind\\": 1}"', Item),  # text in a string
    ('{"kind": 5, "id": 1}', str),  # plain text is wanted
    ('{"kind": 5, "id": 1}', Literal["a", "b"]),
    ('{"a": 1, "b": 2}', str | Item),
    ('{"kind": "text", "text": "", "size": {"a": 1, "b": ', Block),  # the tag is a key as well
    ('{"tags": ["x", "y", 1], "n": 1}', Split),
    ('{"a": 1, "b": 2, "c": 3}', NEIGHBOURS),  # `c` decides about `a`
    ('[1, {"a": 1, "b": 2, "c": 3}]', {"items": NEIGHBOURS}),
    ('[{"a": 1}, 2, 3]', {"$schema": DRAFT_7, "prefixItems": [{"const": 0}], "items": True}),
]


PARTS = [
    ('[{"kind": "text", "size": "x"}, {', list[Block], "/0/size"),  # a whole element of a union
    ('{"n": "x", "tags": [', Split, "/n"),
    ('{"a": [0, 1, "x", 5', dict[str, tuple[int, ...]], "/a/2"),
    ('{"a": ["x", {', dict[str, Shelf], "/a/0"),
    ('{"a": 1, "b": {"c": "x", "d": 1', {"anyOf": [NESTED, {"type": "null"}]}, "/b/c"),
]


@pytest.mark.usefixtures("at_every_character")
@pytest.mark.parametrize(("text", "output", "path"), PARTS)
def test_the_place_of_a_wrong_part_is_its_place_in_the_whole(text, output, path):
    """Parts that were validated before are left out, which changes no place."""
    watch = watched(text, output)
    assert [one["path"] for one in watch.issues] == [path]
    assert watched(text[:-1].rstrip(), output).failure is None


@pytest.mark.usefixtures("at_every_character")
@pytest.mark.parametrize(("text", "output"), UNCERTAIN)
def test_what_may_still_become_valid_goes_on(text, output):
    """In doubt the rest is waited for."""
    assert watched(text, output).failure is None


BY_LEVEL = [
    ("none", "Sure: {", False),  # the whole is refused: only the end says so
    ("none", '{"id": "x", "kind": "film"}', True),
    ("minimal", '```json\n{"id": 1}\n```', False),
    ("minimal", '```json\n{"id": "x", "kind": "film"}', True),
    ("minimal", 'Sure: {"id": 1}', False),
    ("minimal", '{"id": 1, kind: "film"           }', False),
    ("standard", 'Sure: {"id": 1}', False),
    ("standard", '{"id": 1, kind: "film"           }', False),
    ("aggressive", '{"id": "x", "kind": "film"}', False),
    ("standard", '{"id": "x", "kind": "film"}', True),
]


@pytest.mark.usefixtures("at_every_character")
@pytest.mark.parametrize(("level", "text", "stops"), BY_LEVEL)
def test_the_repair_level_decides_what_is_lost(level, text, stops):
    """Prose and slips end no stream at any level; what a guess makes of them is never foreseen."""
    assert (watched(text, Item, level).failure is not None) is stops


def test_the_issues_are_those_of_the_whole():
    """A stopped answer is told in the words in which the whole of it would have been."""
    text = '{"items": [{"id": 1, "kind": "song"}, {"id": 2}], "place": null, "sum": 1.5}'
    whole = build_validator(Order).check(json.loads(text)).issues
    assert watched(text, Order).issues == whole


@pytest.mark.parametrize("size", [1_000, 20_000, pytest.param(100_000, marks=pytest.mark.long)])
@pytest.mark.slow
def test_a_text_is_read_in_time_linear_in_its_length(size, monkeypatch):
    """All the readings together are less than 18 times as long as the text, for long ones."""
    lengths = []
    from_json = growing.from_json

    def counted(text, **options):
        lengths.append(len(text))
        return from_json(text, **options)

    monkeypatch.setattr(growing, "from_json", counted)
    text = json.dumps({"items": [{"id": n} for n in range(size // 11)]})
    watch = Watch(build_validator(Order), "standard")
    for character in text:
        watch.add(character)
    assert watch.failure is None
    assert sum(lengths) < 18 * len(text) + 16 * 512


def test_an_element_is_validated_as_often_as_it_stands_in_something(monkeypatch):
    """However often the text is read again, what is settled is not validated again."""
    seen = []

    def count(value):
        seen.append(value)
        return value

    output = list[Annotated[int, AfterValidator(count)]]
    text = json.dumps(list(range(1_000)))
    text = text.replace("[0,", "[null, 0,").replace("null", "-1")
    watch = Watch(build_validator(dict[str, output]), "standard")
    for character in '{"n": ' + text + ', "m": [1, 2]}':
        watch.add(character)
    assert watch.failure is None
    assert len(seen) <= 2 * 1_003


def test_what_is_too_deep_to_be_judged_is_left_to_the_whole():
    """The depth of an answer is no error of its own while it streams."""
    node = {"type": "object", "properties": {"c": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
    assert watched('{"c":' * 400, node).failure is None


def test_a_schema_that_leads_back_to_itself_ends():
    """A reference to itself is followed a few times."""
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}
    watch = Watch(build_validator(schema), "standard")
    watch.add('{"a": 1, "b": {"c": 1, "d": 2}, "e": 3}')
    assert watch.failure is None


def test_random_chunks_change_nothing():
    """However a text is cut, it is stopped or not as a whole."""
    rng = random.Random(1)
    good = json.dumps({"items": [{"id": n} for n in range(50)]})
    for text, is_lost in ((good, False), (good.replace('"id": 7}', '"id": "x"}'), True)):
        for _ in range(20):
            watch = false_stops.stopped(rng, text, build_validator(Order), "standard")
            assert (watch is not None) is is_lost
