"""What goes into state comes back equal, strictly by type, from JSON alone."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graph_retry._core.params.codec import ParamsCodec
from tests.params.cases import TALK, TYPED, UNTYPED, exact
from tests.params.models import Aliased, Loose, Plain, Point


def through_checkpoint(value: Any) -> Any:
    """Take a value through JSON text and through LangGraph's serializer."""
    serde = JsonPlusSerializer()
    return serde.loads_typed(serde.dumps_typed(json.loads(json.dumps(value, allow_nan=False))))


@pytest.mark.parametrize(("params_type", "value", "types"), TYPED)
def test_typed_params_come_back_exactly(params_type: Any, value: Any, types: Any) -> None:
    """A declared type rebuilds its value; the types map is empty where the type is enough."""
    codec = ParamsCodec(params_type)
    encoded = codec.encode(value)
    assert bool(encoded.types) == bool(types)
    assert encoded.types.items() >= types.items()
    again = codec.decode(*through_checkpoint(encoded))
    assert exact(again, value)
    assert codec.encode(again) == encoded
    assert codec.load(value, {}) == encoded
    assert codec.load(encoded.view, encoded.types) == encoded
    assert not codec.changed_in_place(encoded, again)


@pytest.mark.parametrize(("value", "types"), UNTYPED)
def test_untyped_params_come_back_exactly(value: Any, types: Any) -> None:
    """Without a declared type the types map alone rebuilds the value."""
    codec = ParamsCodec.for_value(value)
    encoded = codec.encode(value)
    assert encoded.types == types
    again = codec.decode(*through_checkpoint(encoded))
    assert exact(again, value)
    assert codec.load(value, {}) == encoded
    assert codec.load(encoded.view, encoded.types) == encoded


def test_views_read_naturally() -> None:
    """A person sees fields by name, a bare value under `value`, messages without their defaults."""
    assert ParamsCodec(None).encode(None).view == {}
    assert ParamsCodec(str).encode("hi").view == {"value": "hi"}
    assert ParamsCodec(Aliased).encode(Aliased.model_validate({"b": 1, "a": 2})).view == {
        "a": 1,
        "b": 2,
        "inner": {"name": "t", "args": {}},
    }
    view = ParamsCodec(dict).encode({"messages": TALK[:2], "limit": float("inf"), "s": {2, 1}}).view
    assert view == {
        "messages": [
            {"content": "be brief", "type": "system"},
            {"content": [{"type": "text", "text": "hi"}], "type": "human", "name": "ann"},
        ],
        "limit": "Infinity",
        "s": [1, 2],
    }


def test_decode_shares_nothing() -> None:
    """Every decoded value is its own copy, down to the last list."""
    for codec in (ParamsCodec(Plain), ParamsCodec(dict)):
        view = {"text": "x", "tags": ["a"], "tool": {"name": "t", "args": {"l": [1]}}}
        before = json.dumps(view)
        one, two = codec.decode(view, {}), codec.decode(view, {})
        tags = one.tags if isinstance(one, Plain) else one["tags"]
        tags.append("b")
        assert json.dumps(view) == before
        assert exact(two, codec.decode(view, {}))


def test_whole_numbers_in_float_fields_become_floats() -> None:
    """A dataclass that was given `1` for a float is stored as the float it stands for."""
    codec = ParamsCodec(Point)
    encoded = codec.encode(Point(1, 2))
    assert json.dumps(encoded.view) == '{"x": 1.0, "y": 2.0}'
    assert not codec.changed_in_place(encoded, codec.decode(*encoded))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=4)
    | st.datetimes().map(lambda moment: moment.replace(fold=0))
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.timedeltas(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text("ab~/-0", max_size=3), JSON_VALUES, max_size=3))
def test_any_tree_comes_back_exactly(tree: dict[str, Any]) -> None:
    """Any tree of supported values survives JSON, untyped and in an `Any` field."""
    for codec, value in ((ParamsCodec(dict), tree), (ParamsCodec(Loose), Loose(a=tree))):
        again = codec.decode(*through_checkpoint(codec.encode(value)))
        assert exact(again, value)
