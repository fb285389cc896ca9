"""The format `xml`: fields in XML tags, such as `<name>Ada</name>`, as prompts often ask for.

The format is not full XML. The text in a tag is not unescaped, so that code and prose may contain
`<` and `&`. Only a CDATA section around a whole text is removed. A number, list or object is JSON
inside its tag. An object may also be nested tags, and a list may be a repeated tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from graph_retry._core.ground.json import is_array, read_digits
from graph_retry._core.output.formats.fences import answer_in
from graph_retry._core.output.formats.place import Place
from graph_retry.lossless.parse import read_output
from graph_retry.lossless.results import refuse_if
from graph_retry.records import Repair

_TAG = re.compile(r"<([A-Za-z_][\w.-]*)(\s[^<>]*)?>")
_CLOSING_TAG = re.compile(r"</([A-Za-z_][\w.-]*)>")
_JSON_LIST = re.compile(r"(?s)\s*\[(?:\s*[\"'\[{]|[^\]]*\Z|.*\]\s*\Z)")
_CDATA = re.compile(r"(?s)<!\[CDATA\[(.*?)\]\]>")
_MAX_DEPTH = 20


class Tagged:
    """Answers in which each field has a tag."""

    name = "xml"

    def parse(self, text: str, schema: dict[str, Any] | None) -> dict[str, Any]:
        """Read the fields that the schema names; without such names, read all top-level tags."""
        return _fields(text, Place.of(schema), 0)

    def repair(self, text: str) -> tuple[str, list[Repair]]:
        """Find the answer in its fence or in the text around it."""
        return answer_in(text, frozenset({"xml", "html"}), _spans)

    def describe(self) -> str:
        """Return the instruction to the model."""
        return (
            "Write each field in a tag of its name, such as <name>…</name>, and nothing else: text "
            "as it is, without escapes; numbers, lists and objects as JSON."
        )


def _fields(text: str, place: Place, depth: int) -> dict[str, Any]:
    refuse_if(depth > _MAX_DEPTH, "too_deep", 0, "Nested too deeply.")
    known, contents = place.fields, dict[str, list[str]]()
    position, begun = 0, False
    while match := _next_tag(text, position, known):
        name, start = match[1], match.end()
        between = text[position : match.start()].strip()
        refuse_if(begun and between, "syntax", position, "Text stands between two fields.")
        refuse_if(match[2], "syntax", match.start(), "A tag with attributes.")
        end = text.find(f"</{name}>", start)
        refuse_if(end < 0, "truncated", match.start(), f"The tag `<{name}>` is never closed.")
        again = f"<{name}>" in text[start:end]
        refuse_if(again, "ambiguous", start, f"The tag `<{name}>` stands inside itself.")
        contents.setdefault(name, []).append(text[start:end])
        position, begun = end + len(name) + 3, True
    closed = contents.keys() & {tag[1] for tag in _CLOSING_TAG.finditer(text, position)}
    refuse_if(closed, "ambiguous", position, "A tag is closed twice.")
    refuse_if(not contents, "no_json", 0, "There is no field in a tag.")
    return {name: _value(texts, place.member(name), depth) for name, texts in contents.items()}


def _next_tag(text: str, position: int, known: set[str]) -> re.Match[str] | None:
    """Find the next tag that is a field. If no names are `known`, any tag is a field."""
    for match in _TAG.finditer(text, position):
        if not known or match[1] in known:
            return match
    return None


def _value(texts: list[str], place: Place, depth: int) -> Any:
    """Return a field's value from the texts of its tags, by the type that the schema wants."""
    wants_list = "array" in place.kinds
    if len(texts) > 1:
        refuse_if(not wants_list, "ambiguous", 0, "A field is there twice.")
        return [_one(text, place.element(at), depth) for at, text in enumerate(texts)]
    value = _one(texts[0], place, depth)
    if wants_list and isinstance(value, str):
        broken = _JSON_LIST.match(value)
        refuse_if(broken, "syntax", 0, f"This list is not JSON: {value[:40]}")
        if not value.strip():
            may_be_text = "string" in (place.element(0).kinds or {"string"})
            refuse_if(may_be_text, "ambiguous", 0, "An empty tag for a list: write [] for none.")
            return []
    one_element = wants_list and "string" not in place.kinds and not is_array(value)
    return [_one(texts[0], place.element(0), depth)] if one_element else value


def _one(text: str, place: Place, depth: int) -> Any:
    kinds, quoted = place.kinds, _quoted(text)
    if not kinds or "string" in kinds:
        return _trimmed(text) if quoted is None else quoted
    text = text if quoted is None else quoted
    tag = _TAG.match(text.strip())
    if tag and "object" in kinds:
        return _fields(text, place, depth + 1)
    if tag and "array" in kinds and tag[1] not in place.element(0).fields:
        inside = _fields_of(text, tag[1])
        return [_one(part, place.element(at), depth + 1) for at, part in enumerate(inside)]
    read = read_output(text.strip(), "none")
    return read_digits(read.text) if read.ok else _trimmed(text)


def _quoted(text: str) -> str | None:
    """Return the text in CDATA sections, or None if the tag contains none."""
    if not text.lstrip().startswith("<![CDATA["):
        return None
    refuse_if(_CDATA.sub("", text).strip(), "syntax", 0, "Text stands beside a CDATA section.")
    return "".join(_CDATA.findall(text))


def _fields_of(text: str, name: str) -> list[str]:
    """List the contents of all tags `name`, and refuse any text between them."""
    inside, end = list[str](), 0
    for start, stop in [*_spans(text, name), (len(text), len(text))]:
        between = text[end:start].strip()
        refuse_if(between, "syntax", end, f"Text stands between the tags `<{name}>`.")
        inside.append(text[start + len(name) + 2 : stop - len(name) - 3])
        end = stop
    return inside[:-1]


def _spans(text: str, name: str | None = None) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each top-level field, or only of the fields `name`, in linear time."""
    closing: dict[str, list[re.Match[str]]] = {}
    for tag in reversed([*_CLOSING_TAG.finditer(text)]):
        closing.setdefault(tag[1], []).append(tag)
    end = 0
    for tag in _TAG.finditer(text):
        if tag.start() < end or name not in {None, tag[1]} or (name and tag[2]):
            continue
        later = closing.get(tag[1], [])
        while later and later[-1].start() < tag.end():
            later.pop()
        if later:
            end = later.pop().end()
            yield tag.start(), end


def _trimmed(text: str) -> str:
    """Remove line breaks next to the tags. If one line is left, remove the spaces around it."""
    trimmed = text.strip(" \t\r\n")  # Other white space, such as U+00A0, belongs to the text.
    return trimmed if "\n" not in trimmed else text.strip("\n")
