"""Find what an edit changed, for the page and the console."""

from collections.abc import Mapping
from typing import Any

from graph_retry.plugins import identical, is_object, pointer


def edited_fields(shown: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `after` that are new, or that differ from `shown`.

    Example:
        >>> edited_fields({"n": 1, "m": "a"}, {"n": True, "m": "a"})
        {'n': True}
    """
    return {
        name: value
        for name, value in after.items()
        if name not in shown or not identical(value, shown[name])
    }


def removed_field(shown: Any, after: Any, path: tuple[str, ...] = ()) -> str:
    """Return the JSON Pointer of a field that is removed although no edit can remove it, or "".

    Example:
        >>> removed_field({"options": {"top": 1}}, {"options": {}})
        '/options/top'
    """
    if is_object(shown) and is_object(after):
        for name, before in shown.items():
            here = (*path, name)
            if name not in after:
                return pointer(here)
            if found := removed_field(before, after[name], here):
                return found
    return ""
