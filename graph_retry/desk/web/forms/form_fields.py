"""Turn a JSON value into the fields of an HTML form, and a posted form back into a JSON value.

The name of a control contains its kind and its JSON Pointer, such as `number:/temperature`, so that
the posted form can be read without its schema. A text that a browser would change is shown as JSON,
so that each value comes back unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from jsonpointer import resolve_pointer

from graph_retry.desk.texts import said
from graph_retry.desk.web.forms.form_values import (
    ALTERED,
    DAY,
    Sparse,
    Unread,
    has_unread,
    read_control,
    visible,
)
from graph_retry.desk.web.forms.schema import ROLES, blank, role_of, tags_of
from graph_retry.plugins import ABSENT, identical, is_array, is_object, kind_of, pointer
from graph_retry.reviews import alternatives, branch_of, element

LONG = 60
"""Maximum number of list items with fields. In a longer list, only wrong items have fields."""

MAX_FIELDS, MAX_LEVELS = 400, 20
"""Maximum number and depth of the fields in a form. Values beyond this are shown as JSON."""

_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
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


@dataclass
class Field:
    """A control of a form, or a group of controls.

    kind: The kind of control.
    text: The content of the control.
    empty: What the tick box beside the control means: `null`, `absent`, or `missing` for an absent
        required value. If there is no box, "".
    is_empty: Whether the box is ticked.
    from_suggestion: Whether a button filled the field with a proposed value.
    role: The key of a chat message that names the speaker.
    tags: The members that choose the branch of a union.
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
    doubts: Sequence[str] = ()
    """The reasons why a gate doubts the value."""
    kept: int = 0
    """The number of all items in a long list of which the form shows only some."""
    from_suggestion: bool = False
    is_changed: bool = False
    """Whether a person has given another value than the form had at first."""
    is_open: bool = False
    """Whether the schema allows any member names, which can then be changed as JSON."""

    @property
    def rows(self) -> int:
        """The height of the text box in lines, from 1 to 16."""
        lines = sum(1 + len(line) // 72 for line in self.text[:20_000].split("\n"))
        return max(1, min(lines, 16))

    @property
    def counts(self) -> tuple[int, int, int]:
        """The number of controls to check, of all others, and of the values in these others."""
        if not self.fields and not self.kept:
            rest = not self.is_marked
            return int(self.is_marked), int(rest), int(rest and not self.is_empty)
        parts = [(0, 0, 0), *(part.counts for part in self.fields)]
        wrong, rest, kept = (sum(numbers) for numbers in zip(*parts, strict=True))
        more = self.kept - len(self.fields) if self.kept else 0
        return wrong, rest + more, kept + more

    def wrong(self) -> Iterator[Field]:
        """Yield this field and the fields in it, if they have a problem."""
        if self.problems:
            yield self
        for part in self.fields:
            yield from part.wrong()

    @property
    def is_marked(self) -> bool:
        """Whether a person has to look at this field, or has changed it."""
        return bool(self.problems or self.doubts or self.is_changed)


class Form:
    """Makes the fields of values, by their JSON Schema.

    `as_json` is the JSON Pointer of a long list that is shown as JSON, with all its items. `posted`
    has the pointers of the fields that a person has sent. `doubts` has the doubts of a gate, by
    JSON Pointer. `before` is the value with which the form began, if a person has sent the form.

    Args:
        root: The whole schema, to resolve references.
        problems: Messages about wrong values, by JSON Pointer.
        show_absent: Whether the form also offers properties that the value lacks.
        locked: Names of top-level fields that a person cannot change.
        add: The JSON Pointer of a list to extend by an item, or of an object that must have exactly
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
        self.as_json: str | None = None
        self.posted: Collection[str] = ()
        self.doubts: Mapping[str, Sequence[str]] = {}
        self.before: Any = ABSENT

    def field(self, node: Any, value: Any, path: tuple[Any, ...] = (), empty: str = "") -> Field:
        """Make the field of a value, with the fields of its members or items."""
        found = alternatives(node, self._root)
        own: dict[str, Any] = node if is_object(node) else {}
        nullable = any(part.get("type") == "null" for part in found)
        known = value is not ABSENT and value is not None
        is_long = isinstance(value, Sparse) or (
            is_array(value) and len(value) > LONG and pointer(path) != self.as_json
        )
        branch = branch_of(found, value if known else ...)
        made = Field(
            kind="some" if is_long else self._kind(found, branch, value, path),
            name=quoted(pointer(path)),
            label=str(path[-1]) if path else "",
            hint=str(own.get("description") or branch.get("description") or "")[:500],
            problems=list(self._problems.get(pointer(path), ())),
            doubts=self.doubts.get(pointer(path), ()),
            empty=("null" if nullable else empty) if known else "",
            is_empty=not known,
            is_locked=bool(path) and path[0] in self._locked,
        )
        if made.kind == "text" and branch.get("format") == "date":
            made.hint = f"{made.hint} Write a day as 2027-03-31.".strip()
        if not known:
            made.empty = "null" if value is None else empty or "missing"
        self._left -= 1
        if made.kind == "choice":
            made.choices = [*_NO_CHOICE.get(made.empty, ()), *_choices(found, value)]
            made.text = "null" if value is None else ""
        if isinstance(value, Unread):
            made.kind, made.text, made.is_empty = value.kind, value.text, False
            made.problems.append(value.why)
        elif made.kind == "some":
            self._fill_some(made, branch, value, path)
        elif made.kind in ("object", "list"):
            self._fill(made, found, branch, value if known else ABSENT, path)
        elif known:
            made.text = _text(made.kind, value)
            made.image = value if isinstance(value, str) and _IMAGE.fullmatch(value) else ""
        if self.before is not ABSENT and not made.fields and made.kind != "some":
            was = resolve_pointer(self.before, pointer(path), ABSENT)
            made.is_changed = has_unread(value) or not is_same(was, value)
        return made

    def _kind(
        self,
        found: list[dict[str, Any]],
        branch: dict[str, Any],
        value: Any,
        path: tuple[Any, ...],
    ) -> str:
        """Choose the kind of control by the schema, or by the value if the schema is open."""
        if self._left <= 0 or len(path) > MAX_LEVELS:
            return "json"
        if _choices(found, value):
            return "choice"
        declared = _CONTROLS.get(str(branch.get("type")))
        kind = declared or _CONTROLS.get(kind_of(value), "json")
        known = value is not ABSENT and value is not None
        is_value = known and not isinstance(value, Unread)
        # If the value of a yes-or-no field is wrong, the text above says so. No button is pressed.
        is_told = kind == "flag" and pointer(path) in self._problems
        is_altered = is_value and not is_told and not _gives_back(kind, value)
        if pointer(path) == self.as_json or is_altered:
            return "json"
        if (is_object(value) or is_array(value)) and len(value) > self._left:
            return "json"
        if kind == "object" and not known and not self._show_absent:
            return "json"
        if kind == "text" and isinstance(value, str):
            if ALTERED.search(value) or ("\r" in value and re.search(r"\r(?!\n)|(?<!\r)\n", value)):
                return "json"
            is_day = branch.get("format") == "date" and DAY.fullmatch(value)
            return "date" if is_day else "crlf" if "\r" in value else "text"
        if kind == "object" and not branch.get("properties") and not (known and value):
            return "json"
        return "date" if kind == "text" and branch.get("format") == "date" else kind

    def _fill_some(
        self, made: Field, node: dict[str, Any], value: Any, path: tuple[Any, ...]
    ) -> None:
        """For a long list, add fields only for items with a problem or with a person's input."""
        start, made.kept = f"{pointer(path)}/", len(value)
        items = value.items() if isinstance(value, Sparse) else enumerate(value)
        numbers = {
            int(number)
            for place in (*self._problems, *self.doubts, *self.posted)
            if place.startswith(start)
            and (number := place.removeprefix(start).partition("/")[0]).isdecimal()
        }
        made.fields = [
            self.field(element(node, number, self._root), item, (*path, number))
            for number, item in items
            if isinstance(value, Sparse) or number in numbers
        ]

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
        made.is_open = self._show_absent and not nodes
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


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are identical as JSON, or both `ABSENT`."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return identical(one, other)


def quoted(pointer: str) -> str:
    """Write a JSON Pointer as a control's name, in characters that all browsers send unchanged.

    Example:
        >>> quoted('/a b/"c"')
        '/a%20b/%22c%22'
    """
    return quote(pointer, safe="/~", errors="surrogatepass")


def _choices(found: Sequence[dict[str, Any]], value: Any) -> list[tuple[str, str]]:
    """List the allowed values, as JSON and as words. Empty if the schema lists no values."""
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
    """Say whether a control that nobody touches sends its value back exactly.

    A control for numbers may show a text, because the form refuses this text.
    """
    if kind in ("object", "list"):
        return is_object(value) if kind == "object" else is_array(value)
    if kind == "text":
        return isinstance(value, str)
    read = read_control(kind, _text(kind, value))
    if isinstance(read, Unread):
        return kind == "number" and isinstance(value, str) and value.isprintable()
    return identical(read, value)


def _text(kind: str, value: Any) -> str:
    if kind == "choice":
        return json.dumps(value)
    if kind != "json":
        return said(value)
    # A text that no field could read is shown as a text.
    return str(visible(json.dumps(value, indent=2, ensure_ascii=False, default=attrgetter("text"))))
