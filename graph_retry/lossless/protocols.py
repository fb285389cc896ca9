"""Read tool calls that open models write as text. Each notation for such calls is a protocol.

A row of `PROTOCOLS` says how a call begins, and whether its arguments are one JSON document, one
element for each parameter, or Python's keywords. To read another notation, add a row. The value of
a call is its arguments, if they fit the caller's type. Otherwise, the value is an object with the
call's name and arguments.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain, combinations
from typing import Any, NamedTuple

from graph_retry.lossless._ground import lazy, written
from graph_retry.lossless.results import (
    Document,
    RefusalKind,
    Unreadable,
    Wanted,
    merged,
    refuse_if,
    repair,
)
from graph_retry.lossless.strict import strict_value
from graph_retry.lossless.weighted.document import read_document
from graph_retry.lossless.weighted.search import Work

_NAME = r"(?P<name>[A-Za-z_][\w.\-]*+)(?::\d+)?"
_MARKS = r"(?:\s|<[|｜][^<>\n]{1,40}[|｜]>|(?:json|commentary|code)\b|`{3}\w*)*+"
_PREFIX = r"(?:\s?[|｜‖]{1,2}\s?\w+\s?[|｜‖]{1,2}\s?|\w+[: ])?"
_FLIPS = 6
"""The most parameters, each text or JSON, whose combinations are all tried on the type."""


class Protocol(NamedTuple):
    """One notation of tool calls.

    told: The notation in words, for messages.
    read: Reads one call. Its argument `limit` is the place where the next call opens. Raises
        `Unreadable` if the call is broken or cut off.
    opening: Matches the beginning of a call.
    element, closing: Patterns of one parameter and of the call's end. They may contain `{prefix}`,
        in place of the group `prefix` of `opening`.
    """

    told: str
    read: Callable[..., "Call"]
    opening: re.Pattern[str]
    element: str = ""
    closing: str = ""


_MARK = lazy(r"</?[^<>\n]{0,20}(?:parameter|arg_key|arg_value)\b[^<>\n]*>")
_OWN_LINES = lazy(r"\A\r?\n|\r?\n\Z")
_TOKEN_QUOTES = lazy(r"<\|\"\|>(.*?)<\|\"\|>", re.DOTALL)


class Call(NamedTuple):
    """A tool call that was read from a text.

    If a parameter may have two values, `arguments` has the likelier value, and `either` has the
    less likely one.
    """

    name: str
    arguments: dict[str, Any]
    either: dict[str, Any]
    document: Document


def openings(
    text: str, start: int, quoting: list[Document]
) -> Iterator[tuple[Protocol, re.Match[str]]]:
    """Yield the beginnings of tool calls in order, except for those inside a JSON document.

    If a beginning fits several rows of `PROTOCOLS`, the first row is taken.
    """
    # Each gap includes the first mark of the next document, because some openings end before `{`.
    gaps = [
        *zip(
            [start, *(one.end for one in quoting)],
            [*(one.start + 1 for one in quoting), len(text)],
            strict=True,
        )
    ]
    found = (
        (row, match)
        for low, high in gaps
        for row in PROTOCOLS
        for match in row.opening.finditer(text, low, high)
    )
    end = start
    for row, match in sorted(found, key=lambda one: one[1].start()):
        if match.start() >= end:
            end = match.end()
            yield row, match


def _document(
    text: str, row: Protocol, opening: re.Match[str], limit: int, complete: bool | None, work: Work
) -> Call:
    is_last = limit == len(text)
    known = complete if is_last else False
    found = read_document(text, opening.end(), limit, work, complete=known)
    if found.refusal and not is_last:  # The next opening may be quoted in this document.
        found = read_document(text, opening.end(), len(text), work, complete=complete)
    if found.refusal:
        raise found.refusal
    return _call(row, opening, found.end, found.value, {}, found)


def _elements(
    text: str, row: Protocol, opening: re.Match[str], _: int, complete: bool | None, __: Work
) -> Call:
    """Read a tool call with one element for each parameter. An element contains text or JSON."""
    groups = {key: re.escape(value or "") for key, value in opening.groupdict().items()}
    spelled = row.element.replace("{prefix}", groups.get("prefix", ""))
    element = re.compile(rf"(?s)\s*{spelled}")
    closing = re.compile(rf"\s*{row.closing.replace('{prefix}', groups.get('prefix', ''))}")
    arguments, either, at = dict[str, Any](), dict[str, Any](), opening.end()
    while match := element.match(text, at):
        key, at = match["key"].strip(), match.end()
        refuse_if(key in arguments, "ambiguous", at, f"The parameter `{key}` is there twice.")
        value, closer = match["value"], f"</{key}>"
        marked = _MARK.search(value) or (closer in value and f"<{key}" not in value)
        refuse_if(marked, "ambiguous", at, f"The parameter `{key}` may end earlier.")
        arguments[key], other = _readings(value, match.groupdict().get("hint") or "")
        either |= {} if other is None else {key: other[0]}
    end = closing.match(text, at)
    if end is None:
        is_cut = complete is not True and not text[at:].strip()
        kind: RefusalKind = "truncated" if is_cut else "syntax"
        raise Unreadable(kind, at, f"A call in the notation {row.told} is not whole.")
    return _call(row, opening, end.end(), arguments, either, None)


def _keywords(
    text: str, row: Protocol, opening: re.Match[str], _: int, __: bool | None, work: Work
) -> Call:
    """Read a tool call with Python's keywords, as an object whose colons are written as `=`."""
    inside = re.compile(f"(?s){row.element}").match(text, opening.end())
    end = re.compile(row.closing).match(text, inside.end()) if inside else None
    if inside is None or end is None:
        raise Unreadable("syntax", opening.start(), f"A call in the notation {row.told} is broken.")
    spelled = _TOKEN_QUOTES.sub(lambda quoted: json.dumps(quoted[1]), inside[0])
    found = read_document(f"{{{spelled}}}", 0, len(spelled) + 2, work, complete=True)
    if found.refusal or type(found.value) is not dict:
        told = f": {found.refusal}" if found.refusal else "."
        raise Unreadable("syntax", opening.end(), f"The keywords of a call cannot be read{told}")
    return _call(row, opening, end.end(), found.value, {}, found)


def _readings(spelled: str, hint: str) -> tuple[Any, tuple[Any] | None]:
    """Return the likelier value of a parameter, and its other value in a tuple, or None."""
    plain = _OWN_LINES.sub("", spelled)
    if 'string="true"' in hint:
        return plain, None
    try:
        value = strict_value(plain.strip(), is_plain=True)
    except (ValueError, RecursionError):
        found = _broken(plain) if plain.lstrip()[:1] in {"{", "["} else None
        return plain, None if found is None else (found.value,)
    if 'string="false"' in hint:
        return value, None
    is_json = type(value) in {dict, list} or written(value) == plain
    return (value, (plain,)) if is_json else (plain, (value,))


def _broken(plain: str) -> Document | None:
    """Read a parameter that is a whole document, but not strict JSON, such as a list in Python."""
    text = plain.strip()
    found = read_document(text, 0, len(text), Work(len(text)), complete=True)
    return found if found.refusal is None and found.end == len(text) else None


def _call(
    row: Protocol,
    opening: re.Match[str],
    end: int,
    arguments: Any,
    either: Any,
    of: Document | None,
) -> Call:
    name, at = opening["name"], opening.start()
    refuse_if(type(arguments) is not dict, "syntax", at, "The arguments of a call are no object.")
    told = repair("call", at, f"the arguments of a call of `{name}`, as {row.told}")
    made = [told, *(of.repairs if of and row.read is _document else [])]
    return Call(name, arguments, either, Document(at, end, arguments, made))


PROTOCOLS = (
    Protocol("`[TOOL_CALLS]name{…}`", _document,
        lazy(rf"\[TOOL_CALLS\]\s*{_NAME}\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\]\s*)?(?=\{{)")),
    Protocol("`functions.name{…}`", _document,
        lazy(rf"(?<![\w.])(?:to=)?(?:functions|tools)\.{_NAME}{_MARKS}(?=\{{)")),
    Protocol("`to=name<|message|>{…}`", _document,
        lazy(rf"\bto=(?!functions\.){_NAME}[^{{}}\n]*?<\|message\|>\s*(?=\{{)")),
    Protocol("`name<sep>{…}`", _document,
        lazy(rf"(?<![\w.]){_NAME}\s*<[|｜]?[\w▁]*(?:sep|arg|content)[\w▁]*[|｜]?>{_MARKS}(?=\{{)")),
    Protocol("`function<sep>name`", _document,
        lazy(rf"\bfunction<[|｜]tool.sep[|｜]>{_NAME}{_MARKS}(?=\{{)")),
    Protocol("`<function=name>{…}`", _document, lazy(rf"<function={_NAME}>\s*(?=\{{)")),
    Protocol("`>>>name`", _document, lazy(rf"(?m)^>>>{_NAME}[ \t]*\n\s*(?=\{{)")),
    Protocol("`✿FUNCTION✿: name`", _document,
        lazy(rf"✿FUNCTION✿:\s*{_NAME}\s*✿ARGS✿:\s*(?=\{{)")),
    Protocol("`<tool_call>name{…}`", _document,
        lazy(rf"<[|｜]?(?:tool_call|function_call|tool_use)[|｜]?>\s*{_NAME}\s*(?=\{{)")),
    Protocol("`<tool_name>name</tool_name><parameters>{…}`", _document,
        lazy(
            rf"<(?P<tag>(?:tool_|function_)?name)>\s*{_NAME}\s*</(?P=tag)>"
            r"\s*<(?:parameters|arguments|args|input)>\s*(?=\{)"
        )),
    Protocol("`<function=name><parameter=key>`", _elements,
        lazy(rf"<function={_NAME}>\s*(?=<parameter=|</function>)"),
        r"<parameter=(?P<key>[^<>\n]+)>(?P<value>.*?)</parameter>(?=\s*(?:<parameter=|</function>))",
        r"</function>"),
    Protocol("`<invoke name=…>`", _elements,
        lazy(rf"<{_PREFIX}invoke name=\"{_NAME}\"[^<>]*>\s*(?=</?{_PREFIX}(?:parameter|invoke))"),
        rf"<{_PREFIX}parameter name=\"(?P<key>[^\"]+)\"(?P<hint>[^<>]*)>(?P<value>.*?)"
        rf"</{_PREFIX}parameter>(?=\s*(?:<{_PREFIX}parameter|</{_PREFIX}invoke>))",
        rf"</{_PREFIX}invoke>"),
    Protocol("`<tool_call>name<arg_key>`", _elements,
        lazy(rf"<(?P<prefix>(?:\w+_)?)tool_call>\s*{_NAME}\s*(?=<(?P=prefix)arg_key>)"),
        r"<{prefix}arg_key>(?P<key>[^<>]+)</{prefix}arg_key>\s*<{prefix}arg_value>(?P<value>.*?)"
        r"</{prefix}arg_value>(?=\s*(?:<{prefix}arg_key>|</{prefix}tool_call>))",
        r"</{prefix}tool_call>"),
    Protocol("`[name(key=value)]`", _keywords,
        lazy(
            rf"(?m)(?:^[ \t]*\[|<[|｜][^<>\n]{{1,40}}[|｜]>\[?|```tool_code\s*\[?|(?<=\)), ?)"
            rf"{_NAME}\((?=\w+ ?=|\))"
        ),
        r"(?:[^()\"']|\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+')*+",
        r"\)(?=\s*(?:,\s*[A-Za-z_][\w.]*\(|\]?\s*(?:\Z|\n|<[|｜]|`)))"),
    Protocol("`call:name{key:value}`", _keywords,
        lazy(rf"(?:<\|tool_call>\s*|\A\s*)call:(?:\w+:)*{_NAME}\s*[({{]"),
        r".*?(?=[)}]\s*(?:<tool_call\|>|\Z))",
        r"[)}]\s*(?:<tool_call\|>)?"),
)  # fmt: skip


def value_of(calls: list[Call], wanted: Wanted) -> Document:
    """Make one value of tool calls: the arguments if they fit, otherwise names and arguments."""
    first, last, count = calls[0].document, calls[-1].document, len(calls)
    is_list = wanted.is_list is True or count > 1
    message = f"There are {count} calls; one is wanted."
    refuse_if(is_list and wanted.is_list is False, "ambiguous", last.start, message)
    refuse_if(
        wanted.complete is False and count > 1, "truncated", last.end, "More calls may be missing."
    )
    made = merged([each for call in calls for each in call.document.repairs])

    def value(flipped: tuple[str, ...], *, is_named: bool) -> Any:
        given = [
            call.arguments | {key: call.either[key] for key in flipped if key in call.either}
            for call in calls
        ]
        named = [
            {"name": call.name, "arguments": one} for call, one in zip(calls, given, strict=True)
        ]
        values = named if is_named else given
        return values if is_list else values[0]

    keys = [*dict.fromkeys(key for call in calls for key in call.either)]
    flips = [*chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1))]
    flips = flips if len(keys) <= _FLIPS else [(), tuple(keys)]
    # If all calls name one function, try the arguments alone first. Names of several are data.
    called = [call.name for call in calls]
    is_chosen = wanted.are_chosen_by(called)
    orders = [True] if is_chosen else [False, True] if len({*called}) == 1 else [True, False]
    readings = (value(flipped, is_named=named) for named in orders for flipped in flips)
    if wanted.fits is None:
        chosen = value((), is_named=True)
    else:
        chosen = next(filter(wanted.fits, readings), value((), is_named=is_chosen))
    return Document(first.start, last.end, chosen, made)
