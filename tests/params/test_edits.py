"""A view that a person or a program changed: taken over, or refused with the field."""

import json
import pickle  # noqa: TID251 (errors cross processes)
from datetime import date, datetime
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel, ConfigDict, Field

from graph_retry import edit, resume, retry_llm_call
from graph_retry._core.params.codec import ParamsCodec, ParamsInvalid
from graph_retry._core.params.patch import Encoded
from tests.loops import thread
from tests.params.models import Aliased, Chat, Loose, Open, Owner, Plain, Point, Request


class Call(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    top_k: int = Field(alias="topK", ge=1)
    inner: Aliased | None = None


class Picky(BaseModel):
    n: int = 1

    def model_post_init(self, context: Any) -> None:
        if self.n == 0:
            raise ZeroDivisionError("n")


# (params type, view or value, types, view after loading)
LOADED: list[tuple[Any, Any, dict[str, str], dict[str, Any]]] = [
    (None, None, {}, {}),
    (None, {}, {}, {}),
    (str, "hi", {}, {"value": "hi"}),
    (str, {"value": "hi"}, {}, {"value": "hi"}),
    (int, "5", {}, {"value": 5}),
    (dict, {"a": 1}, {}, {"a": 1}),
    (dict, {"a": datetime(2026, 1, 1)}, {}, {"a": "2026-01-01T00:00:00"}),  # noqa: DTZ001
    (Plain, {"text": "x", "count": "4"}, {},
     {"text": "x", "temperature": 0.7, "count": 4, "on": True, "tags": [], "tool": None}),
    (Point, {"x": 1}, {}, {"x": 1.0, "y": 0.0}),
    (Call, {"top_k": 2, "inner": {"a": 1, "b": 2}}, {},
     {"top_k": 2, "inner": {"a": 1, "b": 2, "inner": {"name": "t", "args": {}}}}),
    (Open, {"n": 1, "new": [1]}, {}, {"n": 1, "new": [1]}),
    (Request, {"prompt": "p", "when": "2026-01-01"}, {},
     {"prompt": "p", "when": "2026-01-01T00:00:00"}),
    (Request, {"prompt": "p", "tool": {"name": "t"}}, {},
     {"prompt": "p", "tool": {"name": "t", "args": {}}}),
    (list[int], {"value": [1]}, {}, {"value": [1]}),
    (list[BaseMessage], [HumanMessage("a")], {}, {"value": [{"content": "a", "type": "human"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("params_type", "value", "types", "view"), LOADED)
def test_state_is_loaded(params_type: Any, value: Any, types: Any, view: Any) -> None:
    """Instances, views with defaults left out and bare values all load."""
    loaded = ParamsCodec(params_type).load(value, types)
    assert json.dumps(loaded.view) == json.dumps(view)


# (params type, view, types, paths of the issues)
REFUSED: list[tuple[Any, Any, dict[str, str], list[str]]] = [
    (None, {"a": 1}, {}, ["/a"]),
    (str, {"value": 5}, {}, ["/value"]),
    (str, 5, {}, ["/value"]),
    (int, {"n": 5}, {}, ["/value"]),
    (dict, "text", {}, [""]),
    (dict, None, {}, [""]),
    (Plain, None, {}, [""]),
    (Plain, ["x"], {}, [""]),
    (Plain, {}, {}, ["/text"]),
    (Plain, {"text": "x", "temprature": 1}, {}, ["/temprature"]),
    (Plain, {"text": "x", "count": "many", "on": []}, {}, ["/count", "/on"]),
    (Plain, {"text": "x", "tool": {"name": "t", "nmae": 1}}, {}, ["/tool/nmae"]),
    (Plain, {"text": "x", "tool": {"args": {}}}, {}, ["/tool/name"]),
    (Plain, {"text": "x", "tags": ["a", 1]}, {}, ["/tags/1"]),
    (Point, {"x": 1, "z": 2}, {}, ["/z"]),
    (Request, {"prompt": "p", "more": 1}, {}, ["/more"]),
    (Call, {"topK": 0}, {}, ["/top_k"]),
    (Call, {"top_k": 1, "inner": {"a": "x", "b": 1}}, {}, ["/inner/a"]),
    (Owner[int], {"pet": {"kind": "cat", "lives": "x"}, "thing": 1}, {}, ["/pet/lives"]),
    (Picky, {"n": 0}, {}, [""]),
    (dict, {"when": "soon"}, {"/when": "datetime"}, ["/when"]),
    (dict, {"when": 5, "n": []}, {"/when": "date", "/n": "decimal"}, ["/when", "/n"]),
    (dict, {"ids": "ab"}, {"/ids": "set"}, ["/ids"]),
    (dict, {"ids": [[1]]}, {"/ids": "set"}, ["/ids"]),
    (dict, {"m": [{"content": "x"}]}, {"/m/-": "message"}, ["/m/0"]),
    (dict, {"m": {"type": "human"}}, {"/m": "message"}, ["/m"]),
    (dict, {"d": "2026-01-01T00:00:00"}, {"/d": "datetime[No/Where]"}, ["/d"]),
    (dict, {"d": "2026-01-01T00:00:00"}, {"/d": "datetime[../../etc/passwd]"}, ["/d"]),
    (Loose, {"f": {"name": "x", "radius": 2}}, {}, ["/f/radius"]),
    (Loose, {"d": "/w="}, {"/d": "base64"}, ["/d"]),
    (Loose, {"d": " /w== "}, {"/d": "base64"}, ["/d"]),
    (Loose, {"e": ["/w==", "texts"]}, {"/e/-": "base64"}, ["/e/1"]),
    (dict, {"d": "/w="}, {"/d": "base64"}, ["/d"]),
]  # fmt: skip


@pytest.mark.parametrize(("params_type", "view", "types", "paths"), REFUSED)
def test_unfit_views_are_refused(params_type: Any, view: Any, types: Any, paths: Any) -> None:
    """Each issue points into the view by field name, and the error survives pickling."""
    codec = ParamsCodec(params_type)
    with pytest.raises(ParamsInvalid) as caught:
        codec.load(view, types)
    error = caught.value
    assert [issue["path"] for issue in error.issues] == paths
    assert all(issue["message"] for issue in error.issues)
    again = pickle.loads(pickle.dumps(error))
    assert (again.issues, str(again)) == (error.issues, str(error))
    unknown = all(issue["code"] == "unknown_field" for issue in error.issues)
    if not (unknown or (codec.form == "bare" and not isinstance(view, dict))):
        with pytest.raises(ParamsInvalid):
            codec.decode(view, types)


def test_text_no_checkpointer_keeps_is_refused() -> None:
    """A lone surrogate in an edit is refused by field, like one in the original params."""
    with pytest.raises(ValueError, match=r"`params\.text` holds a lone surrogate"):
        ParamsCodec(Plain).load({"text": "\ud800"}, {})


def test_unknown_fields_list_the_known_ones() -> None:
    """A typing error in a field name is answered with the names there are."""
    with pytest.raises(ParamsInvalid, match="`text`, `temperature`, `count`") as caught:
        ParamsCodec(Plain).load({"text": "x", "temprature": 1}, {})
    assert caught.value.issues[0]["code"] == "unknown_field"


# (params type or None, value, edited view, expected value)
EDITED: list[tuple[Any, Any, Any, Any]] = [
    (None, {"d": [date(2026, 1, 1)]}, {"d": ["2026-01-01", "2026-01-02"]},
     {"d": [date(2026, 1, 1), date(2026, 1, 2)]}),
    (None, {"x": float("nan")}, {"x": 0.5}, {"x": 0.5}),
    (None, {"x": (1, 2)}, {"x": [1]}, {"x": (1,)}),
    (None, {"x": date(2026, 1, 1)}, {}, {}),
    (Chat, Chat(base=[HumanMessage("a")]),
     {"base": [{"type": "human", "content": "a"}, {"type": "human", "content": "b"}]},
     Chat(base=[HumanMessage("a"), HumanMessage("b")])),
    (Loose, Loose(b=datetime(2026, 1, 1)), {"b": "soon"}, Loose(b="soon")),  # noqa: DTZ001
    (Loose, Loose(d=b"\xff"), {"d": "/v8="}, Loose(d=b"\xfe\xff")),
    (Loose, Loose(d=b"/w=="), {"d": "/w="}, Loose(d=b"/w=")),
    (Loose, Loose(a=b"\xff"), {"a": 5}, Loose(a=5)),
    (Loose, Loose(a=(1, 2)), {"a": "text"}, Loose(a="text")),
]  # fmt: skip


@pytest.mark.parametrize(("params_type", "value", "view", "expected"), EDITED)
def test_edits_keep_their_types(params_type: Any, value: Any, view: Any, expected: Any) -> None:
    """The types map outlives an edit; where it no longer fits, the declared type decides."""
    codec = ParamsCodec(dict) if params_type is None else ParamsCodec(params_type)
    types = codec.encode(value).types
    assert codec.decode(view, types) == expected
    loaded = codec.load(view, types)
    assert codec.decode(*loaded) == expected


def test_changes_in_place_are_noticed() -> None:
    """A changed copy is told from an untouched one, even when it cannot be stored any more."""

    def touched(codec: ParamsCodec[Any], before: Encoded, change: Any) -> bool:
        copy = codec.decode(*before)
        change(copy)
        return codec.changed_in_place(before, copy)

    plain = ParamsCodec(Plain)
    before = plain.encode(Plain(text="x", tags=["a"]))
    assert not touched(plain, before, lambda p: p.model_dump())
    assert touched(plain, before, lambda p: p.tags.append("b"))
    assert touched(plain, before, lambda p: setattr(p, "temperature", 1))
    assert touched(plain, before, lambda p: setattr(p, "text", object()))
    untyped = ParamsCodec(dict)
    before = untyped.encode({"n": 1, "f": {1}, "m": [HumanMessage("a")]})
    assert not touched(untyped, before, lambda p: None)
    assert touched(untyped, before, lambda p: p.update(n=True))
    assert touched(untyped, before, lambda p: p.update(f=open))
    assert touched(untyped, before, lambda p: p["f"].add(2))
    assert touched(untyped, before, lambda p: setattr(p["m"][0], "content", "b"))


@pytest.mark.parametrize(
    ("codec", "fields", "form", "required"),
    [
        (ParamsCodec(None), (), "empty", None),
        (ParamsCodec(str), ("value",), "bare", ["value"]),
        (ParamsCodec(dict), None, "object", None),
        (ParamsCodec(dict[str, int]), None, "object", None),
        (ParamsCodec(Open), None, "object", None),
        (ParamsCodec(Point), ("x", "y"), "object", ["x"]),
        (ParamsCodec(Aliased), ("a", "b", "inner"), "object", ["a", "b"]),
        (ParamsCodec(Request), ("prompt", "when", "tool"), "object", ["prompt"]),
        (ParamsCodec.for_value({"a": 1}), None, "object", None),
        (ParamsCodec.for_value([1]), ("value",), "bare", None),
        (ParamsCodec.for_value(None), (), "empty", None),
    ],
)
def test_codec_tells_its_form(
    codec: ParamsCodec[Any], fields: Any, form: str, required: Any
) -> None:
    """Fields, form and an object schema are known before any value is."""
    assert (codec.fields, codec.form) == (fields, form)
    schema = codec.schema({"a": 1})
    assert schema["type"] == "object"
    assert schema.get("required") == required
    json.dumps(schema)


def test_schemas_are_the_callers_own() -> None:
    """Changing a returned schema changes nothing else; untyped views are described by example."""
    codec = ParamsCodec(Plain)
    codec.schema()["properties"].clear()
    assert codec.schema()["properties"]["text"]["type"] == "string"
    assert ParamsCodec(dict).schema({"a": [1], "b": {"c": True}, "d": None})["properties"] == {
        "a": {"type": "array"},
        "b": {"type": "object", "properties": {"c": {"type": "boolean"}}},
        "d": {},
    }


def test_a_view_from_outside_may_use_the_models_aliases():
    """A client that fills in the model's own form sends aliases; the view has field names."""

    class Sampling(BaseModel):
        top_k: int = Field(alias="topK")

    codec = ParamsCodec(Sampling)
    assert codec.load({"topK": 3}, {}).view == {"top_k": 3}
    assert codec.load({"top_k": 3}, {}).view == {"top_k": 3}


class Ask(NamedTuple):
    """Params that declare their fields."""

    prompt: str
    limit: int = 1


def test_an_annotated_named_tuple_is_its_own_type():
    """As a retry node's params are; one without annotations does not say what it holds."""
    seen = []

    @entrypoint(checkpointer=InMemorySaver())
    def count(prompt):
        return retry_llm_call(lambda given: seen.append(given) or "many", Ask(prompt), output=int)

    count.invoke("Hi.", thread())
    resume(count, thread(), edit(value=["Hello.", 2]))
    assert seen == [Ask("Hi."), Ask("Hello.", 2)]
    assert all(type(given) is Ask for given in seen)
