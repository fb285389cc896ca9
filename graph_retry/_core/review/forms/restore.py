"""Read the values that an answer gives for the fields of the params or of an output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from graph_retry._core.ground.issues import SHOWN_ISSUES, Path, issue, literal
from graph_retry._core.ground.json import NotJsonError, is_array, is_number, is_object, read_json
from graph_retry._core.ground.pictures import UnknownPictureError, unnoted
from graph_retry._core.ground.schemas import (
    ANY_KIND,
    alternatives,
    element,
    kind_of,
    kinds,
    kinds_of,
    member,
)
from graph_retry._core.ground.wording import did_you_mean, meaning, near_miss
from graph_retry._core.review.forms.originals import (
    LostDigitsError,
    UnreadableError,
    names_behind,
    put_back,
)
from graph_retry.lossless._ground import EscapedText
from graph_retry.records import Issue

_LITERALS = {"true": "true", "false": "false", "none": "null"}
_NUMBERS = frozenset({"number", "integer"})
_EXPECTED = {
    "number": "a number",
    "boolean": "true or false",
    "array": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
    "string": "text",
    "null": "null",
}
"""The words for JSON types in messages, as in "`age` expects a number"."""


class Field(NamedTuple):
    """One field of the params or of an output, for which an answer may send a new value.

    name: The path of the field, such as `user.age`; empty for the whole params or output.
    node, root: The JSON Schema of the field, and the whole schema that it is a part of.
    shown, original: The value that the reviewer saw, and the real value.
    from_form: Whether the values come from the text boxes of a form.
    is_open: Whether objects may get new fields, because no type declares their fields.
    path: The parts of the JSON Pointer to the sent value.
    """

    name: str
    node: Any
    root: dict[str, Any]
    shown: Any = None
    original: Any = None
    from_form: bool = False
    is_open: bool = False
    path: Path = ()

    def member(self, label: str, branches: Sequence[dict[str, Any]]) -> Field:
        """Return the field for one member of this object. The reviewer saw its key as `label`."""
        name = names_behind(self.shown, self.original).get(label, label)
        nodes = [member(branch, name) for branch in branches]
        return self._replace(
            name=f"{self.name}.{name}" if self.name else name,
            node=nodes[0] if len(nodes) == 1 else {"anyOf": [node or {} for node in nodes]},
            shown=self.shown.get(label),
            original=self.original.get(name),
            path=(*self.path, label),
        )

    def issue(self, problem: str) -> Issue:
        """Return an issue record about the sent value, which refuses it."""
        return issue(self.path, problem, "unreadable")


def restored(value: Any, field: Field, issues: list[Issue]) -> Any:
    """Return the new value of a field. If the value is wrong, add an issue and return the original.

    - If a field takes no text, a text is read as JSON. If it takes texts, a text stays as typed.
      But if the field also allows null or the type of the shown value, a text that is such a value
      in JSON is read as JSON.
    - An object is merged onto the shown object, key by key and at every depth. But it replaces the
      shown object if it is sent as a text, or fits a different branch of a union. It also replaces
      the shown object if a form sends it for a field whose schema names no fields.
    - A list replaces the shown list.
    - A part that equals its shown value becomes the original again.

    Example:
        >>> root = {"properties": {"n": {"type": "number"}}}
        >>> restored("0.2", Field("n", root["properties"]["n"], root, 0.7, 0.7), [])
        0.2
    """
    shown, is_text = field.shown, isinstance(value, str)
    try:
        value = unnoted(value, shown) if field.from_form else value
        if isinstance(value, str) and value != shown:
            value = _read(value, field)
        if is_array(value):
            value = with_types(value, shown, field.node, field.root)
        if is_object(value) and is_object(shown) and not is_text:
            branches = _branches_to_merge(value, field)
            if any(branch.get("properties") or not field.from_form for branch in branches):
                return merged(value, field, branches, issues)
        if unknown := list(_unknown_inside(value, field)):
            issues += unknown
            return field.original
        return put_back(value, shown, field.original)
    except UnreadableError as error:
        issues.append(field.issue(f"`{field.name}` {error}."))
    except (LostDigitsError, UnknownPictureError, UnknownRoleError) as error:
        issues.append(field.issue(f"`{field.name}`: {error}."))
    return field.original


def merged(
    value: dict[str, Any], field: Field, branches: Sequence[dict[str, Any]], issues: list[Issue]
) -> dict[str, Any]:
    """Merge a sent object onto a field's original value. Add an issue for each wrong member."""
    names, result = names_behind(field.shown, field.original), dict(field.original)
    for label, item in value.items():
        if len(issues) >= SHOWN_ISSUES:
            break
        inner = field.member(label, branches)
        problem = _unknown(label, inner.name, value, field, branches)
        if problem is not None:
            issues.append(inner.issue(problem))
        else:
            result[names.get(label, label)] = restored(item, inner, issues)
    return result


def object_branches(node: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the branches of a union that accept objects. A schema without a union is one branch.

    Example:
        >>> object_branches({"anyOf": [{"properties": {"a": {}}}, {"type": "null"}]}, {})
        [{'properties': {'a': {}}}]
    """
    return [one for one in alternatives(node, root) if "object" in kinds(one)]


def _branches_to_merge(value: dict[str, Any], field: Field) -> list[dict[str, Any]]:
    """Return the branches of a union that the result of a merge may fit.

    The sent object may fit only a branch that the shown object does not fit. Then the result is
    empty, and the sent object replaces the shown object.
    """
    branches, shown = object_branches(field.node, field.root), field.shown
    new = {key: item for key, item in value.items() if key not in shown}
    own = [one for one in branches if _agrees(one, shown) and _declares(one, shown)] or branches
    own = [one for one in own if _agrees(one, value)]
    into = [one for one in own if _declares(one, new)]
    if not into and any(_agrees(one, value) and _declares(one, value) for one in branches):
        return []
    return into or _closest(own, value)


def branch_of(found: Sequence[dict[str, Any]], value: Any) -> dict[str, Any]:
    """Return the branch of a union whose JSON type, constants and field names fit a value.

    Example:
        >>> branch_of([{"type": "integer"}, {"type": "string"}], "ten")
        {'type': 'string'}
    """
    kind = kind_of(value)
    fitting = [node for node in found if "type" not in node or kind in kinds(node)]
    if is_object(value):
        fitting = branches_followed(fitting, value)
    others = [node for node in found if node.get("type") != "null"]
    return (fitting or (others if len(others) == 1 else []) or [{}])[0]


def branches_followed(
    branches: Sequence[dict[str, Any]], value: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the branches of a union whose constants and field names fit an object.

    Example:
        >>> branches = [{"properties": {"number": {}}}, {"properties": {"iban": {}}}]
        >>> branches_followed(branches, {"iban": "DE02"})
        [{'properties': {'iban': {}}}]
    """
    return _closest([one for one in branches if _agrees(one, value)] or branches, value)


def _closest(branches: Sequence[dict[str, Any]], value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the branches that allow all fields of an object, or the closest branch."""
    if all_of_them := [one for one in branches if _declares(one, value)]:
        return all_of_them
    by_names = sorted(branches, key=lambda one: len(value.keys() & one["properties"].keys()))
    return by_names[-1:]


def _agrees(branch: dict[str, Any], value: dict[str, Any]) -> bool:
    """Return whether an object has the constants of a branch, such as the tag of a union."""
    named: dict[str, Any] = branch.get("properties") or {}
    tags = {
        name: node["const"] for name, node in named.items() if is_object(node) and "const" in node
    }
    return all(value.get(name, tag) == tag for name, tag in tags.items())


def _declares(branch: dict[str, Any], value: dict[str, Any]) -> bool:
    """Return whether a branch allows all fields of an object."""
    return _is_open(branch) or value.keys() <= branch["properties"].keys()


def _is_open(branch: dict[str, Any]) -> bool:
    """Return whether a branch allows fields that it does not name."""
    others = branch.get("additionalProperties") or branch.get("patternProperties")
    return bool(others) or not branch.get("properties")


def _unknown(
    label: str,
    name: str,
    sent: dict[str, Any],
    field: Field,
    branches: Sequence[dict[str, Any]],
) -> str | None:
    """Return the problem with a field of an unknown name; None if the field is accepted.

    Most types would silently ignore an unknown field. If an object allows any field, a new field is
    accepted, unless its name looks misspelt.
    """
    declared = dict.fromkeys(key for one in branches for key in one.get("properties") or ())
    known = (*field.shown, *declared)
    if label in known:
        return None
    problem = f"There is no field {literal(name, 80)}"
    outer, dot, inner = label.partition(".")
    if dot and is_object(field.shown.get(outer)):
        path = literal({outer: {inner.rpartition(".")[2]: "…"}}, 80)
        return f"{problem}: to change a part of `{outer}`, send an object such as {path}."
    if not (field.is_open or any(map(_is_open, branches))):
        names = ", ".join(f"`{each}`" for each in declared)
        return f"{problem}.{did_you_mean(label, known)} The fields are {names}."
    wrapped = sent[label]
    held = next((name for name in field.shown if is_object(wrapped) and name in wrapped), None)
    if held is not None and not sent.keys() & field.shown.keys():
        how = f"To change `{held}`, send it as a separate field, not inside `{label:.80}`."
        return f"{problem}. {how} To add a new field, send `{held}` as well."
    near = near_miss(label, known, sent)
    if near is None:
        return None
    return f"{problem}. {meaning(label, near)} To add a new field, send `{near}` as well."


def _unknown_inside(value: Any, field: Field) -> Iterator[Issue]:
    """Yield an issue for each unknown field in a value that replaces the original, at any depth."""
    new = field._replace(shown={}, original={})
    if is_array(value):
        lists = [one for one in alternatives(field.node, field.root) if "array" in kinds(one)]
        for at, item in enumerate(value):
            nodes: list[Any] = [element(one, at, field.root) or {} for one in lists]
            path, name = (*field.path, at), f"{field.name}.{at}"
            yield from _unknown_inside(
                item, new._replace(name=name, node={"anyOf": nodes}, path=path)
            )
    elif is_object(value) and (branches := object_branches(field.node, field.root)):
        branches = branches_followed(branches, value)
        for label, item in value.items():
            inner = new.member(label, branches)
            problem = _unknown(label, inner.name, value, new, branches)
            yield from [inner.issue(problem)] if problem else _unknown_inside(item, inner)


def _read(text: str, field: Field) -> Any:
    """Read the text that was sent for a field, by the field's schema or its shown value."""
    allowed, shown = kinds_of(field.node, field.root), field.shown
    if allowed == ANY_KIND and field.from_form and shown is not None:
        allowed = frozenset({kind_of(shown)})
    if allowed & _NUMBERS:  # The type's own error is the best one for `1.5` in an `int` field.
        allowed |= _NUMBERS
    readable, source, why = allowed, _LITERALS.get(text.strip().casefold(), text), ""
    if "string" in allowed:
        kinds_shown = _NUMBERS if is_number(shown) else {kind_of(shown)}
        stays = isinstance(shown, str) and allowed == ANY_KIND
        readable = frozenset[str]() if stays else allowed & {*kinds_shown, "null"} - {"string"}
        source = text
    try:
        parsed = read_json(source)
        if isinstance(parsed, str) and "string" not in allowed:
            parsed = read_json(parsed)
        # A field that takes text may hold a decimal, such as `1.10`, whose digits a float loses.
        is_exact = "string" not in allowed or not is_number(parsed) or json.dumps(parsed) == text
        if kind_of(parsed) in readable and is_exact:
            return parsed
    except NotJsonError as error:
        why = f" ({error})" if allowed & {"array", "object"} else ""
    if "string" in allowed:
        return text
    expected = " or ".join(words for kind, words in _EXPECTED.items() if kind in allowed)
    raise UnreadableError(f"expects {expected}, not {literal(text, 80)}{why}")


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
    """A message in a list of LangChain messages lacks a known `role` or `type`."""


def with_types(items: list[Any], shown: Any, node: Any, root: dict[str, Any]) -> list[Any]:
    """Replace the `role` of each message in a list by the `type` that LangChain uses.

    Without a `type`, the validation may take the first message class that fits, which is often
    `SystemMessage`. If neither the shown value nor the schema has LangChain messages, the list is
    returned unchanged.

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
        return {**message, "type": _TYPES.get(str(kind), kind)}  # LangChain checks unknown names.
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
