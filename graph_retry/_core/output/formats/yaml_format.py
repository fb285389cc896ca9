"""The format YAML, read with PyYAML's parser but without YAML's conversions of plain words.

A plain word is a number or boolean only if JSON has the same number or boolean, and if the schema
allows it there. So the country `NO` stays text, and so do `2026-01-31` and `12:30`. If the schema
wants text, the version `1.10` stays text. `null`, `~` and an empty value are always null.

A number such as `017` is refused, because it is octal in YAML 1.1 and decimal in YAML 1.2. Aliases
are refused, because a few lines with aliases can expand to gigabytes. Tags, repeated keys and a
second document are also refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from graph_retry._core.ground.functions.calling import joined
from graph_retry._core.ground.json import read_digits
from graph_retry._core.output.formats.fences import answer_in
from graph_retry._core.output.formats.place import Place
from graph_retry.lossless.results import Unreadable, refuse_if
from graph_retry.lossless.weighted.lexis import LEFT_OUT
from graph_retry.records import Repair

_lib: Any = yaml  # PyYAML is published without types.

# A block scalar: the more deeply indented lines after `code: |` are text, whatever they contain.
_BLOCK = re.compile(
    r"(?m)^( *+)(?:[^\n]*[:-] ++)?[|>][-+\d]*+[ \t]*+(?:#[^\n]*+)?\n"
    r"(?:(?:\1 [^\n]*+|[ \t]*+)(?:\n|\Z))++"
)
# PyYAML treats these characters as line breaks and would change the text around them.
_OTHER_BREAK = re.compile("[\x85\u2028\u2029]")
_TAGS = frozenset({"yaml", "yml"})
_MAX_DEPTH = 200
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
# YAML 1.1 reads an exponent only in a number with a point and a signed exponent. It reads any other
# number with an exponent as text.
_AGREED = re.compile(r"[^eE]*|[^eE]*\.[^eE]*[eE][+-].*")
_OCTAL = re.compile(r"[-+]?0[0-7_]+", re.ASCII)
"""An octal number in YAML 1.1, but a decimal number in YAML 1.2."""
_ELIDED = re.compile(r"(?m)^[ \t]*+(?:- *)?(?:\.\.\.|…)|\s(?:\.\.\.|…)\s*$")
# A comment on its own line, or after an unquoted value on the same line.
_COMMENT = re.compile(r"(?m)^(?:[^\n#\"']*+(?<=[ \t]))?#(.*)")


class Yaml:
    """Answers in YAML."""

    name = "yaml"

    def parse(self, text: str, schema: dict[str, Any] | None) -> Any:
        """Read one YAML document."""
        comment = _eliding_comment(text)
        refuse_if(comment, "elided", comment.start() if comment else 0, "Data was left out.")
        other = _OTHER_BREAK.search(text)
        at = other.start() if other else 0
        refuse_if(other, "syntax", at, "A line ends in another character than a line feed.")
        try:
            return _Reader(text).document(Place.of(schema))
        except _lib.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = "" if mark is None else f" in line {mark.line + 1}"
            said = str(getattr(error, "problem", None) or getattr(error, "reason", error))
            position = 0 if mark is None else mark.index
            raise Unreadable("syntax", position, f"This is not YAML: {said}{line}.") from None

    def repair(self, text: str) -> tuple[str, list[Repair]]:
        """Find the answer in its fence or in the text around it."""
        return answer_in(text, _TAGS, _blocks)

    def describe(self) -> str:
        """Return the instruction to the model."""
        return "Write one YAML document and nothing else: no prose, no anchors, no tags."


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    return (block.span() for block in _BLOCK.finditer(text))


def _eliding_comment(text: str) -> re.Match[str] | None:
    """Find a comment in place of omitted data, such as `# … 20 more`."""
    outside = _BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    return next((one for one in _COMMENT.finditer(outside) if LEFT_OUT.search(one[1])), None)


class _Reader:
    """Builds a JSON value from the events of PyYAML's parser."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = _lib.parse(text, Loader=_lib.SafeLoader)

    def document(self, place: Place) -> Any:
        value: Any = None
        count = 0
        for event in self._events:
            if isinstance(event, _lib.DocumentStartEvent):
                count += 1
                at = event.start_mark.index
                refuse_if(count > 1, "ambiguous", at, "There are two YAML documents.")
                value = self._value(next(self._events), place, 0)
            if isinstance(event, _lib.DocumentEndEvent) and event.explicit:
                # `...` ends a YAML document, but models also write it for the rest of a list.
                raise Unreadable("elided", event.start_mark.index, "Data was left out.")
        refuse_if(count == 0, "no_json", 0, "There is no YAML document.")
        return value

    def _value(self, event: Any, place: Place, depth: int) -> Any:
        at = event.start_mark.index
        refuse_if(depth > _MAX_DEPTH, "too_deep", at, "Nested too deeply.")
        is_alias = isinstance(event, _lib.AliasEvent)
        refuse_if(is_alias or event.anchor, "syntax", at, "Anchors and aliases are not read.")
        refuse_if(event.tag not in {None, "!"}, "syntax", at, "Tags are not read.")
        if isinstance(event, _lib.ScalarEvent):
            # As in JSON, two escapes may spell one character, as the halves of a surrogate pair.
            return joined([event.value]) if event.style else _plain(event.value, place, at)
        if isinstance(event, _lib.SequenceStartEvent):
            return self._sequence(place, depth)
        return self._mapping(place, depth)

    def _sequence(self, place: Place, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), _lib.SequenceEndEvent):
            items.append(self._value(event, place.element(len(items)), depth + 1))
        return items

    def _mapping(self, place: Place, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not isinstance(event := next(self._events), _lib.MappingEndEvent):
            at = event.start_mark.index
            is_key = isinstance(event, _lib.ScalarEvent) and not event.anchor and not event.tag
            refuse_if(not is_key, "syntax", at, "A key must be plain text.")
            key: str = event.value  # A key stays text: `1: a` has the key "1".
            refuse_if(key in members, "ambiguous", at, f"The key `{key[:40]}` is there twice.")
            refuse_if(key == "<<", "syntax", at, "Merge keys are not read.")
            members[key] = self._value(next(self._events), place.member(key), depth + 1)
        return members


def _plain(text: str, place: Place, at: int) -> Any:
    """Read a scalar without quotes as text, or as a JSON number, boolean or null."""
    refuse_if(_ELIDED.search(text), "elided", at, "Data was left out.")
    number = _NUMBER.fullmatch(text)
    if number is None and text not in _WORDS:
        has_two = _OCTAL.fullmatch(text) and int(text, 8) != int(text, 10) and place.excludes_text
        refuse_if(has_two, "ambiguous", at, f"`{text[:40]}` may be octal: leave out the zero.")
        return text
    if number is not None and not _AGREED.fullmatch(text) and not place.excludes_text:
        return text
    value = _WORDS[text] if number is None else read_digits(text)
    if value is None:
        return None
    kind = "boolean" if number is None else "integer" if type(value) is int else "number"
    return text if place.wants_text_only(kind) else value
