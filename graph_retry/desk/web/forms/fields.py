"""Turn a JSON value into the fields of an HTML form, and a posted form back into a JSON value.

The name of a control has its kind and its JSON Pointer, such as `number:/temperature`. The posted
form can therefore be read without its schema. A browser must send each value back unchanged, and
a text that a browser would alter is shown as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from graph_retry._core.ground.json import (
    ABSENT,
    NotJsonError,
    is_array,
    is_number,
    is_object,
    pointer,
    pointer_parts,
    read_json,
)
from graph_retry._core.ground.schemas import alternatives, element, kind_of
from graph_retry.desk.web.forms.schema import ROLES, blank, branch_of, role_of, tags_of
from graph_retry.desk.web.words import said
from graph_retry.lossless._ground import identical

MAX_FIELDS, MAX_LEVELS = 400, 20
"""Maximum number and depth of the fields in a form. Any further value is shown as JSON."""

_ALTERED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff\ufff9-\uffff]"
)
"""Characters that a text box changes, that are invisible, or that reverse the text direction."""

_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_CONTROLS = {
    "string": "text",
    "number": "number",
    "integer": "number",
    "boolean": "flag",
    "object": "object",
    "array": "list",
}
_NO_CHOICE = {
    "null": [("null", "no value")],
    "absent": [("", "leave out")],
    "missing": [("", "choose")],
}
_WHY = {
    "number": "Write a number, such as 3 or 0.5.",
    "flag": "Choose yes or no.",
    "date": "Choose a day.",
}


@dataclass(frozen=True)
class Unread:
    """A typed text that is not a value of its field. The form shows the text again and says why."""

    kind: str
    text: str
    why: str


@dataclass
class Field:
    """A control of a form, or a group of controls.

    `kind` is the kind of control, and `text` is its content. `empty` is the effect of the tick box
    beside the control: `null`, `absent`, `missing` if a required value is absent, or "" without a
    box. `is_empty` means that the box is ticked. `from_suggestion` means that a press filled the
    field. `role` is the key of a message that names the speaker. `tags` choose a union's branch.
    """

    kind: str
    name: str
    label: str
    text: str = ""
    hint: str = ""
    problems: list[str] = field(default_factory=list[str])
    empty: str = ""
    is_empty: bool = False
    choices: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    fields: list[Any] = field(default_factory=list[Any])
    image: str = ""
    role: str = ""
    tags: Collection[str] = ()
    is_locked: bool = False
    from_suggestion: bool = False

    @property
    def rows(self) -> int:
        """The height of the text box in lines, from 1 to 16."""
        lines = sum(1 + len(line) // 72 for line in self.text[:20_000].split("\n"))
        return max(1, min(lines, 16))

    @property
    def has_problems(self) -> bool:
        """Whether this field, or a field in it, has a problem."""
        return bool(self.problems) or any(part.has_problems for part in self.fields)


class Form:
    """Makes the fields for values, by their JSON Schema.

    Args:
        root: The whole schema, in which references are resolved.
        problems: Messages about wrong values, by JSON Pointer.
        show_absent: Whether the form also offers properties that the value does not have.
        locked: Names of top-level fields that a person cannot change.
        add: The JSON Pointer of a list that gets a further item, or of an object that gets exactly
            the members of its chosen branch.
    """

    def __init__(
        self,
        root: dict[str, Any],
        problems: Mapping[str, Sequence[str]] | None = None,
        *,
        show_absent: bool = False,
        locked: Iterable[str] = (),
        add: str | None = None,
    ) -> None:
        self._root, self._problems = root, problems or {}
        self._show_absent, self._locked = show_absent, frozenset(locked)
        self._left, self._add = MAX_FIELDS, add
        self.placed: set[str] = set()

    def field(self, node: Any, value: Any, path: tuple[Any, ...] = (), empty: str = "") -> Field:
        """Make the field of a value, with the fields of its members or items."""
        found = alternatives(node, self._root)
        own: dict[str, Any] = node if is_object(node) else {}
        nullable = any(part.get("type") == "null" for part in found)
        known = value is not ABSENT and value is not None
        branch = branch_of(found, value if known else ...)
        made = Field(
            kind="json" if len(path) > MAX_LEVELS else self._kind(found, branch, value),
            name=quoted(pointer(path)),
            label=str(path[-1]) if path else "",
            hint=str(own.get("description") or branch.get("description") or "")[:500],
            problems=list(self._problems.get(pointer(path), ())),
            empty=("null" if nullable else empty) if known else "",
            is_empty=not known,
            is_locked=bool(path) and path[0] in self._locked,
        )
        if made.kind == "text" and branch.get("format") == "date":
            made.hint = f"{made.hint} Write a day as 2027-03-31.".strip()
        if not known:
            made.empty = "null" if value is None else empty or "missing"
        self.placed.add(pointer(path))
        self._left -= 1
        if made.kind == "choice":
            made.choices = [*_NO_CHOICE.get(made.empty, ()), *_choices(found, value)]
            made.text = "null" if value is None else ""
        if isinstance(value, Unread):
            made.kind, made.text, made.is_empty = value.kind, value.text, False
            made.problems.append(value.why)
        elif made.kind in ("object", "list"):
            self._fill(made, found, branch, value if known else ABSENT, path)
        elif known:
            made.text = _text(made.kind, value)
            made.image = value if isinstance(value, str) and _IMAGE.fullmatch(value) else ""
        return made

    def _kind(self, found: list[dict[str, Any]], branch: dict[str, Any], value: Any) -> str:
        """Choose the kind of control by the schema, or by the value if the schema is open."""
        if self._left <= 0:
            return "json"
        if _choices(found, value):
            return "choice"
        declared = _CONTROLS.get(str(branch.get("type")))
        kind = declared or _CONTROLS.get(kind_of(value), "json")
        is_value = not (value is ABSENT or value is None or isinstance(value, Unread))
        if is_value and not _gives_back(kind, value):
            return "json"
        if (is_object(value) or is_array(value)) and len(value) > self._left:
            return "json"
        if kind == "object" and (value is None or value is ABSENT) and not self._show_absent:
            return "json"
        if kind == "text" and isinstance(value, str):
            if _ALTERED.search(value) or (
                "\r" in value and re.search(r"\r(?!\n)|(?<!\r)\n", value)
            ):
                return "json"
            is_day = branch.get("format") == "date" and _DAY.fullmatch(value)
            return "date" if is_day else "crlf" if "\r" in value else "text"
        if kind == "object" and not branch.get("properties") and not value:
            return "json"
        return "date" if kind == "text" and branch.get("format") == "date" else kind

    def _fill(
        self,
        made: Field,
        found: Sequence[dict[str, Any]],
        node: dict[str, Any],
        value: Any,
        path: tuple[Any, ...],
    ) -> None:
        """Add the fields of an object's properties, or of a list's items."""
        if made.kind == "list":
            items: list[Any] = [*value] if is_array(value) else []
            if pointer(path) == self._add:
                node_of_new = element(node, len(items), self._root)
                items.append(blank(node_of_new, self._root, items[-1] if items else None))
            made.fields = [
                self.field(element(node, number, self._root), item, (*path, number))
                for number, item in enumerate(items)
            ]
            return
        shown: dict[str, Any] = value if is_object(value) else {}
        made.tags = tags = tags_of(found)
        nodes: dict[str, Any] = {**(node.get("properties") or {}), **tags}
        if tags and pointer(path) == self._add:
            shown = {name: part for name, part in shown.items() if name in nodes}
        required = (*(node.get("required") or ()), *tags)
        made.role = role_of(shown)
        names = list(shown)
        if self._show_absent and not made.role:
            names = [*nodes, *(name for name in shown if name not in nodes)]
        elif tags:  # Another branch may need members that the shown value does not have.
            names += [name for name in required if name not in shown]
        for name in names:
            optional = "absent" if self._show_absent and name not in required else ""
            part = shown.get(name, ABSENT)
            below = self.field(
                nodes.get(name, node.get("additionalProperties")), part, (*path, name), optional
            )
            if made.role and name == made.role:
                below.kind = "choice"
                below.choices = [(json.dumps(word), word) for word in ROLES[name]]
                below.text = json.dumps(part)
            made.fields.append(below)


def quoted(pointer: str) -> str:
    """Write a JSON Pointer as a control's name, in characters that each browser sends unchanged.

    Example:
        >>> quoted('/a b/"c"')
        '/a%20b/%22c%22'
    """
    return quote(pointer, safe="/~", errors="surrogatepass")


def _choices(found: Sequence[dict[str, Any]], value: Any) -> list[tuple[str, str]]:
    """List the allowed values, as JSON and as words; empty if the schema lists no values."""
    allowed: list[Any] = []
    for node in found:
        if node.get("type") == "null":
            continue
        if "const" not in node and not is_array(node.get("enum")):
            return []
        allowed += [node["const"]] if "const" in node else node["enum"]
    is_simple = all(isinstance(each, str | int | float | bool) for each in allowed)
    if not is_simple or is_object(value) or is_array(value):
        return []
    if allowed and value is not None and value is not ABSENT and not isinstance(value, Unread):
        allowed.append(value)  # The present value stays a choice, even if it is not allowed.
    return list(dict.fromkeys((json.dumps(each), said(each)) for each in allowed))


def _gives_back(kind: str, value: Any) -> bool:
    """Return whether a control that nobody touches sends its value back exactly.

    A number's control also shows a text that is not a number, because the form refuses this text.
    """
    if kind in ("object", "list"):
        return is_object(value) if kind == "object" else is_array(value)
    if kind == "text":
        return isinstance(value, str)
    read = _READERS[kind](kind, _text(kind, value))
    if isinstance(read, Unread):
        return kind == "number" and isinstance(value, str) and value.isprintable()
    return identical(read, value)


def _text(kind: str, value: Any) -> str:
    if kind == "choice":
        return json.dumps(value)
    if kind != "json":
        return said(value)
    return str(visible(json.dumps(value, indent=2, ensure_ascii=False)))


def read_form(posted: Iterable[tuple[str, str]]) -> Any:
    """Read the value of a posted form. An unreadable field becomes an `Unread` in the value.

    Returns:
        The value, or `ABSENT` if the form has no field, or if the person left the value out.

    Example:
        >>> read_form([("object:", ""), ("number:/n", "0.5"), ("list:/tags", ""),
        ...            ("text:/tags/0", "a"), ("flag:/on", "true")])
        {'n': 0.5, 'tags': ['a'], 'on': True}
        >>> read_form([("object:", ""), ("number:/n", "half")])
        {'n': Unread(kind='number', text='half', why='Write a number, such as 3 or 0.5.')}
    """
    controls: dict[str, tuple[str, str]] = {}
    ticks: dict[str, str] = {}
    for name, text in posted:
        kind, _, where = name.partition(":")
        if kind == "none":
            ticks[where] = text
        elif kind in _READERS:
            controls[where] = (kind, text)
    below: dict[str, list[tuple[str, str]]] = {}
    for where in controls:
        if parts := pointer_parts(unquote(where, errors="surrogatepass")):
            below.setdefault(where.rpartition("/")[0], []).append((parts[-1], where))
    return _read("", controls, ticks, below)


def _read(
    where: str,
    controls: Mapping[str, tuple[str, str]],
    ticks: Mapping[str, str],
    below: Mapping[str, list[tuple[str, str]]],
) -> Any:
    if where not in controls:
        return ABSENT
    kind, text = controls[where]
    parts = [(key, _read(at, controls, ticks, below)) for key, at in below.get(where, ())]
    there = [(key, part) for key, part in parts if part is not ABSENT]
    was, _, empty = ticks.get(where, "").rpartition("-")
    is_group = kind in ("object", "list")
    if empty and not (was and (there if is_group else text.strip())):
        return None if empty == "null" else ABSENT
    if is_group:
        return dict(there) if kind == "object" else [part for _, part in there]
    if empty:
        return Unread(kind, text, "There is a value here, and “no value” is ticked: choose one.")
    return _READERS[kind](kind, text)


def _read_text(kind: str, text: str) -> Any:
    text = text.replace("\r\n", "\n")
    return text.replace("\n", "\r\n") if kind == "crlf" else text


def _read_number(kind: str, text: str) -> Any:
    value = _read_json(kind, text.strip())
    return value if is_number(value) else Unread(kind, text, _WHY[kind])


def _read_flag(kind: str, text: str) -> Any:
    return {"true": True, "false": False}.get(text, Unread(kind, text, _WHY[kind]))


def _read_date(kind: str, text: str) -> Any:
    return text if _DAY.fullmatch(text) else Unread(kind, text, _WHY[kind])


def _read_choice(kind: str, text: str) -> Any:
    return _read_json(kind, text) if text else ABSENT  # The choice "leave out" has an empty value.


def _read_json(kind: str, text: str) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        return Unread(kind, text, _WHY.get(kind, f"This is not JSON: {error}."))


_READERS: dict[str, Any] = {
    "text": _read_text,
    "crlf": _read_text,
    "number": _read_number,
    "flag": _read_flag,
    "date": _read_date,
    "choice": _read_choice,
    "json": _read_json,
    "object": None,
    "list": None,
}


def has_unread(value: Any) -> bool:
    """Return whether a value contains an `Unread`."""
    if is_object(value) or is_array(value):
        return any(map(has_unread, value.values() if is_object(value) else value))
    return isinstance(value, Unread)


def visible(value: Any) -> Any:
    r"""Write invisible characters, and those that reverse the text direction, as JSON escapes.

    Example:
        >>> print(visible("price\u202e05"))
        price\u202e05
    """
    if not isinstance(value, str):
        return value
    return _ALTERED.sub(lambda found: json.dumps(found[0])[1:-1], value)
