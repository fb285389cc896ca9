"""Patches rebuild exactly, hold no old values and read naturally."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_retry._core.params.patch import apply_patch, diff_views, initial_patch, readable_diff

LEAF = (
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0, 2.0, "", "a", "1"])
)
KEYS = st.text("a~/-01", max_size=2)
JSON = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
VIEWS = st.dictionaries(KEYS, JSON, max_size=4)


def text(value: Any) -> str:
    """Spell JSON so that `1`, `1.0` and `true` differ."""
    return json.dumps(value, sort_keys=True)


@settings(max_examples=300, deadline=None)
@given(VIEWS, VIEWS)
@pytest.mark.slow
def test_a_patch_rebuilds_the_new_view(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Applying the difference gives the new view, strictly by type, and leaves the old as it is."""
    before = text(old)
    patch = diff_views(old, new)
    assert text(apply_patch(old, json.loads(json.dumps(patch)))) == text(new)
    assert text(old) == before
    assert (patch == []) == (text(old) == text(new))
    assert {entry["op"] for entry in patch} <= {"add", "remove", "replace"}
    assert bool(readable_diff(old, new)) == bool(patch)


@settings(max_examples=100, deadline=None)
@given(st.lists(JSON, max_size=6), st.integers(0, 6), JSON)
def test_one_inserted_element_is_one_operation(items: list[Any], at: int, item: Any) -> None:
    """Lists grow in the patch by what was added, wherever it was added."""
    grown = [*items[:at], item, *items[at:]]
    assert [e["op"] for e in diff_views({"l": items}, {"l": grown})] == ["add"]
    assert [e["op"] for e in diff_views({"l": grown}, {"l": items})] == ["remove"]


def test_the_first_patch_is_one_replacement() -> None:
    """The first attempt's patch sets the whole view, from any document."""
    view = {"a": [1]}
    patch = initial_patch(view)
    assert patch == [{"op": "replace", "path": "", "value": {"a": [1]}}]
    rebuilt = apply_patch({}, patch)
    rebuilt["a"].append(2)
    assert (view, patch[0]["value"]) == ({"a": [1]}, {"a": [1]})


def test_patches_share_nothing_with_views() -> None:
    """A patch in the ledger does not change when a view does."""
    new = {"a": {"b": [1]}}
    patch = diff_views({}, new)
    kept = copy.deepcopy(patch)
    apply_patch({}, patch)["a"]["b"].append(2)
    new["a"]["b"].append(3)
    assert patch == kept


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "replace", "path": "/missing/deep", "value": 1}],
        [{"op": "remove", "path": "/missing"}],
        [{"op": "fly", "path": "/a"}],
        [{"path": "/a"}],
        [{"op": "replace", "path": "a", "value": 1}],
    ],
)
def test_a_foreign_patch_is_refused(patch: list[dict[str, Any]]) -> None:
    """A patch that was made for another view is an error that says so."""
    with pytest.raises(ValueError, match="cannot be applied"):
        apply_patch({"a": 1}, patch)


def test_old_values_stay_out_of_the_patch() -> None:
    """The ledger keeps what is new; only the readable diff tells what was before."""
    old, new = {"prompt": "old text", "n": 1}, {"prompt": "new text", "n": 1}
    assert "old text" not in json.dumps(diff_views(old, new))
    assert readable_diff(old, new) == [
        {"path": "/prompt", "before": "old text", "after": "new text"}
    ]


def test_a_difference_far_into_a_long_word_is_shown() -> None:
    """Two texts in base64 that begin alike would look alike once they are cut."""
    old, new = "QUJD" * 600, "QUJD" * 500 + "xyz" + "QUJD" * 99
    [entry] = readable_diff({"image": old}, {"image": new})
    assert entry["before"] != entry["after"]
    assert "xyz" in entry["after"]
    assert len(entry["after"]) <= 1000


def test_readable_diffs_are_bounded() -> None:
    """Long values are cut with a marker, and no more than fifty changes are listed."""
    [entry] = readable_diff({"a": "x" * 1000, "b": 1}, {"a": ["y" * 1000], "b": 1})
    assert entry["before"] == "x" * 1000
    assert entry["after"].endswith(" … (1,004 characters)")
    many = readable_diff({}, {str(i): i for i in range(60)})
    assert len(many) == 51
    assert many[0] == {"path": "/0", "before": "(not set)", "after": 0}
    assert many[-1]["after"] == "… and 10 more changes"
