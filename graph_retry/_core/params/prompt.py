"""Find the prompt in params, and tell the caller's text from parts that this library added.

This library adds feedback, comments, lessons and corrections to the prompt. It recognises an added
part by its place, and never by its words, because any text may contain the same words. After an
edit, a part is still recognised if its exact text occurs once before and once after the edit.
Otherwise, the part counts as text of the person who made the edit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from graph_retry._core.ground.json import digest, is_array, is_object
from graph_retry._core.params.fields import fields_of
from graph_retry.records import Addition, Sealed

_MESSAGES = {"assistant": AIMessage, "user": HumanMessage, "system": SystemMessage}

BARE = "value"
"""The name of the only field of params that are one text, as in their view."""


@dataclass
class Added:
    """Fields of the params (`fields`), and the parts that were added to their texts (`parts`).

    A hook gets this record as `error.added`. A hook that adds parts to the prompt assigns a new
    record to `error.added`.
    """

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parts: Sequence[Addition] = ()

    def still_in(self, fields: Mapping[str, Any]) -> list[Addition]:
        """Return the parts that changed `fields` still contain, with their places in `fields`."""
        found: list[Addition] = []
        for name in dict.fromkeys(part["field"] for part in self.parts):
            here = [part for part in self.parts if part["field"] == name]
            before, after = self.fields.get(name), fields.get(name)
            if _has_parts(before) and type(before) is type(after):
                found += _kept(before, here, after)
        return found


def named_fields(params: Any) -> Mapping[str, Any]:
    """Return the fields of params by name. A single text is the field `value`."""
    return {BARE: params} if isinstance(params, str) else fields_of(params)


def seal(view: Mapping[str, Any], parts: Sequence[Addition]) -> Sealed:
    """Return the added parts for graph state, with a hash of the fields that contain them."""
    return {"of": _hash(view, parts), "parts": list(parts)}


def unsealed(view: Mapping[str, Any], sealed: Sealed | None) -> list[Addition] | None:
    """Return the added parts from graph state; None if it is not known which parts were added.

    The parts are not known if `sealed` is None, or if somebody has edited the fields that contain
    parts.
    """
    if sealed is None or (sealed["parts"] and sealed["of"] != _hash(view, sealed["parts"])):
        return None
    return sealed["parts"]


def without(value: Any, parts: Sequence[Addition]) -> Any:
    """Return a text or a list of messages without these added parts.

    Example:
        >>> without("Who? No.", [{"by": "comment", "field": "prompt", "start": 4, "end": 8}])
        'Who?'
    """
    for part in sorted(parts, key=lambda part: part["start"], reverse=True):
        left = value[: part["start"]]
        if inside := part.get("inside"):
            message = value[part["start"]]
            content = fields_of(message)["content"]
            own = content[: inside[0]] + content[inside[1] :]
            left = [*left, with_fields(message, {"content": own})]
        value = left + value[part["end"] :]
    return value


def moved(parts: Sequence[Addition], at: int, by: int) -> list[Addition]:
    """Move each part that begins at `at` or later by `by` places, and return all parts."""
    return [
        {**part, "start": part["start"] + by, "end": part["end"] + by}
        if part["start"] >= at
        else part
        for part in parts
    ]


def removed(parts: Sequence[Addition], by: Collection[str]) -> list[Addition]:
    """Return the parts that other authors than `by` added, with their new places."""
    kept = [part for part in parts if part["by"] not in by]
    for gone in sorted(parts, key=lambda part: part["start"], reverse=True):
        if gone["by"] in by and "inside" not in gone:
            kept = moved(kept, gone["start"], gone["start"] - gone["end"])
    return kept


def _has_parts(value: Any) -> bool:
    return isinstance(value, str) or is_array(value)


def _hash(view: Mapping[str, Any], parts: Sequence[Addition]) -> str:
    names = sorted({part["field"] for part in parts})
    return digest([view.get(name) for name in names]) if names else ""


def _kept(before: Any, parts: Sequence[Addition], after: Any) -> list[Addition]:
    """Return the parts of one field that its new value `after` still contains, with new places."""
    if before is after or (len(before) == len(after) and _is_at(before, after, 0)):
        return list(parts)
    found: list[Addition] = []
    for part in parts:
        start, end = part["start"], part["end"]
        if inside := part.get("inside"):
            found += _kept_inside(before[start], part, inside, after)
            continue
        # Feedback may be several messages, of which a person may have removed one.
        pieces = [before[start:end]]
        if not isinstance(before, str) and _place(before, after, pieces[0]) is None:
            pieces = [before[at : at + 1] for at in range(start, end)]
        for piece in pieces:
            at = _place(before, after, piece)
            if at is not None:
                found.append({**part, "start": at, "end": at + len(piece)})
    found.sort(key=lambda part: part["start"])
    ends = [0, *(part["end"] for part in found)]
    return [part for part, end in zip(found, ends, strict=False) if part["start"] >= end]


def _kept_inside(message: Any, part: Addition, inside: Sequence[int], after: Any) -> list[Addition]:
    """Return a part of one message if its exact content occurs once in `after`."""
    content = fields_of(message)["content"]
    piece = content[inside[0] : inside[1]]
    places = [
        (at, place)
        for at, each in enumerate(after)
        if type(held := fields_of(each).get("content")) is type(content)
        for place in _places(held, piece)
    ]
    if len(places) != 1 or len(_places(content, piece)) != 1:
        return []
    ((at, place),) = places
    return [{**part, "start": at, "end": at + 1, "inside": [place, place + len(piece)]}]


def _place(before: Any, after: Any, piece: Any) -> int | None:
    """Return a piece's place in the new value; None unless it occurs once in both values."""
    places = _places(after, piece)
    is_certain = piece and len(places) == 1 and len(_places(before, piece)) == 1
    return places[0] if is_certain else None


def _places(value: Any, piece: Any) -> list[int]:
    """Return the first two places at which a piece occurs. The two may overlap."""
    if isinstance(value, str):
        first = value.find(piece)
        second = -1 if first < 0 else value.find(piece, first + 1)
        return [at for at in (first, second) if at >= 0]
    places = (at for at in range(len(value) - len(piece) + 1) if _is_at(piece, value, at))
    return [at for at, _ in zip(places, range(2), strict=False)]


def _is_at(piece: Any, value: Any, at: int) -> bool:
    if isinstance(value, str):
        return value.startswith(piece, at)
    return all(_same(one, value[at + place]) for place, one in enumerate(piece))


def _same(one: Any, other: Any) -> bool:
    """Return whether two messages are equal, without calling `==` of unknown classes."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if is_object(one) or is_array(one):
        pairs = one.items() if is_object(one) else enumerate(one)
        fits = len(one) == len(other) and (is_array(one) or one.keys() == other.keys())
        return fits and all(_same(item, other[key]) for key, item in pairs)
    if isinstance(one, str | int | float | None):
        return bool(one == other)
    fields = fields_of(one)
    return bool(fields) and _same(dict(fields), dict(fields_of(other)))


def with_fields(params: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of params with some fields replaced.

    Raises:
        ValueError: If the params lack one of the fields.

    Example:
        >>> with_fields({"model": "small", "seed": 1}, {"model": "large"})
        {'model': 'large', 'seed': 1}
    """
    require_fields(params, changes, "the hook")
    if isinstance(params, BaseModel):
        return params.model_copy(update=changes)
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return dataclasses.replace(params, **changes)
    return {**cast("dict[str, Any]", params), **changes}


def require_fields(params: Any, names: Iterable[str], owner: str) -> None:
    """Raise if the params lack a field that the hook `owner` changes.

    Raises:
        ValueError: If the params lack a field. The message names the field.

    Example:
        >>> require_fields({"model": "small"}, ["model"], "my_hook")
    """
    fields = fields_of(params)
    for name in names:
        if name not in fields:
            known = ", ".join(f"`{field}`" for field in list(fields)[:20]) or "none"
            raise ValueError(
                f"`{owner}` changes the field `{name}`, which the params do not have (they have "
                f"{known}): add it to the params, so that it can be seen and edited, or leave it "
                "out of the hook."
            )


class Prompt:
    """The prompt in some params, or the params themselves if they are one text.

    value: The prompt: a text, or a list of messages (LangChain's messages or dicts).
    parts: The parts of the prompt that this library added.

    Example:
        >>> Prompt({"prompt": "Who?"}).replaced("Who is it?")
        {'prompt': 'Who is it?'}
    """

    def __init__(
        self,
        params: Any,
        field: str | None = None,
        *,
        owner: str = "feedback",
        added: Added | None = None,
    ) -> None:
        """Find the prompt: in `field` if it is given, otherwise in `messages` or `prompt`.

        `added` has the parts that this library added. `added.fields` may be the fields of earlier
        params.

        Raises:
            ValueError: If there is no prompt, or if it is neither a text nor a list.
        """
        known = {"": params} if isinstance(params, str) else fields_of(params)
        name = self.found_in(known, field)
        if name is None:
            looked = field or "messages` or `prompt"
            raise ValueError(
                f"{owner} found no text or list of messages in the params' `{looked}`: name the "
                f"field to write to, e.g. `{owner}(field='instructions')`."
            )
        self._params, self._name = params, name
        self.value: Any = known[name]
        everywhere = [] if added is None else added.still_in(named_fields(params))
        self.parts = [part for part in everywhere if part["field"] == self.field]
        self._elsewhere = [part for part in everywhere if part["field"] != self.field]

    @staticmethod
    def found_in(fields: Mapping[str, Any], field: str | None = None) -> str | None:
        """Return the name of the prompt's field: `field` if given, else `messages` or `prompt`.

        The result is None if this field is missing, or holds neither a text nor a list. For params
        that are one text, give `{"": text}`: the result is then "".

        Example:
            >>> Prompt.found_in({"model": "small", "prompt": "Who?"})
            'prompt'
        """
        names = (field,) if field else ("", "messages", "prompt")
        name = next((name for name in names if fields.get(name) is not None), None)
        is_prompt = name is not None and (isinstance(fields[name], str) or is_array(fields[name]))
        return name if is_prompt else None

    @property
    def text(self) -> str:
        """The prompt as one text, to measure or compare it."""
        if isinstance(self.value, str):
            return self.value
        return "\n".join(str(fields_of(message).get("content")) for message in self.value)

    @property
    def own(self) -> Self:
        """The prompt without the parts that this library added."""
        return self._changed(without(self.value, self.parts), [])

    @property
    def field(self) -> str:
        """The name of the prompt's field in the view of the params."""
        return self._name or BARE

    def without(self, *by: str) -> Self:
        """Return the prompt without the parts that these authors added, such as `feedback`."""
        gone = [part for part in self.parts if part["by"] in by]
        return self._changed(without(self.value, gone), removed(self.parts, by))

    def adding(self, by: Any, piece: str | list[Any], at: int) -> Self:
        """Return the prompt with `piece` inserted at an index, as a part by the author `by`."""
        part: Addition = {"by": by, "field": self.field, "start": at, "end": at + len(piece)}
        value = self.value[:at] + piece + self.value[at:]
        return self._changed(value, [*moved(self.parts, at, len(piece)), part])

    def adding_to_last(self, by: Any, text: str) -> Self | None:
        """Add a text to the last message; None if it is not the user's or has no text."""
        message = self.value[-1] if self.value else None
        fields = fields_of(message)
        content = fields.get("content")
        if fields.get("role", fields.get("type")) not in ("user", "human"):
            return None
        piece: Any = text
        if is_array(content):
            texts = [block for block in content if is_object(block) and "text" in block]
            kind = texts[-1].get("type") if texts else None
            piece = [{"type": kind, "text": text.lstrip()}] if kind else None
        elif not isinstance(content, str):
            return None
        if piece is None:
            return None
        start, at = len(content), len(self.value) - 1
        part: Addition = {"by": by, "field": self.field, "start": at, "end": at + 1}
        part["inside"] = [start, start + len(piece)]
        told = with_fields(message, {"content": content + piece})
        return self._changed([*self.value[:-1], told], [*self.parts, part])

    def _changed(self, value: Any, parts: list[Addition]) -> Self:
        made = object.__new__(type(self))
        vars(made).update(vars(self), value=value, parts=parts)
        return made

    @property
    def params(self) -> Any:
        """A copy of the params with this prompt."""
        return self.replaced(self.value)

    @property
    def added(self) -> Added:
        """The parts of `params` that this library added."""
        parts = sorted([*self._elsewhere, *self.parts], key=lambda part: part["start"])
        return Added(named_fields(self.params), parts)

    def replaced(self, value: str | list[Any]) -> Any:
        """Return a copy of the params with a new prompt."""
        return with_fields(self._params, {self._name: value}) if self._name else value

    def turns(self, *said: tuple[str, str]) -> list[Any]:
        """Return messages for (role, text) pairs, of the same kind as the prompt's messages."""
        if self.value and isinstance(self.value[0], BaseMessage):
            return [_MESSAGES[role](text) for role, text in said]
        return [{"role": role, "content": text} for role, text in said]

    @property
    def after_system(self) -> int:
        """The index of the first message after the system messages at the prompt's beginning."""
        kinds = [*map(self.is_system, self.value), False]
        return kinds.index(False)

    @staticmethod
    def is_system(message: Any) -> bool:
        """Return whether a message has the role `system` or `developer`."""
        fields = fields_of(message)
        return fields.get("role", fields.get("type")) in ("system", "developer")

    def placed(self, by: Any, block: str) -> Self:
        r"""Return the prompt with `block` before its text, or in a new last system message.

        Example:
            >>> Prompt("Who?").placed("lessons", "Mind the names.").value
            'Mind the names.\n\nWho?'
        """
        if isinstance(self.value, str):
            return self.adding(by, f"{block}\n\n", 0)
        return self.adding(by, self.turns(("system", block)), self.after_system)
