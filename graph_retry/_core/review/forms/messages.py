"""Give chat messages in an edit the `type` that LangChain needs, from the providers' `role`."""

from typing import Any

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.ground.schemas import alternatives, element
from graph_retry.lossless._ground import EscapedText

_TYPES = {
    "user": "human",
    "assistant": "ai",
    "system": "system",
    "tool": "tool",
    "human": "human",
    "ai": "ai",
    "function": "function",
}
_LANGCHAIN = {"content", "additional_kwargs", "response_metadata", "type"}


class UnknownRoleError(EscapedText, ValueError):
    """A message in a list of LangChain messages has no known `role` or `type`."""


def with_types(items: list[Any], shown: Any, node: Any, root: dict[str, Any]) -> list[Any]:
    """Replace the `role` of messages by the `type` that selects one of LangChain's classes.

    Without a `type`, validation may take the first class that fits, which is often `SystemMessage`.
    A list changes only if its shown value or its schema has messages of LangChain.

    Raises:
        UnknownRoleError: If a message has neither a `role` nor a `type`, or an unknown one.

    Example:
        >>> with_types([{"role": "user", "content": "x"}], [{"type": "ai", "content": ""}], {}, {})
        [{'content': 'x', 'type': 'human'}]
    """
    before = shown if is_array(shown) else []
    lists = [one for one in alternatives(node, root) if "items" in one]
    declared = [item for one in lists for item in alternatives(element(one, 0, root), root)]
    if not any(map(_is_message, before)) and not any(
        item.get("properties", {}).keys() >= _LANGCHAIN for item in declared
    ):
        return items
    return [_with_type(item) if is_object(item) else item for item in items]


def _is_message(item: Any) -> bool:
    known = is_object(item) and "content" in item and "role" not in item
    return known and item.get("type") in _TYPES.values()


def _with_type(message: dict[str, Any]) -> dict[str, Any]:
    role, kind = message.get("role"), message.get("type")
    if role is None and kind is not None:
        return {**message, "type": _TYPES.get(str(kind), kind)}  # LangChain checks other names.
    known = _TYPES.get(str(role).casefold())
    if known is None or kind not in (None, role, known):
        came = (
            "none" if role is None else literal({"role": role, "type": kind} if kind else role, 80)
        )
        raise UnknownRoleError(
            "a message needs a `role` (user, assistant, system or tool) or LangChain's `type`, and "
            f"came with {came}"
        )
    return {**{key: part for key, part in message.items() if key != "role"}, "type": known}
