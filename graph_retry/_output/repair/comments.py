"""White space and comments between the parts of a document.

A comment that only explains the data is left out; one that stands for data is refused.
"""

import re

from graph_retry._output.repair.report import Notes, Unreadable, refuse_if
from graph_retry._output.repair.scan import ANY_SPACE, FULL_WIDTH, KEY, STRICT_SPACE

_JSON_SPACE = frozenset(" \t\r\n")
_JSON_MARKS = frozenset([*'"{}[],:', ""])
COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/|<!--.*?-->", re.DOTALL)
_DATA = (
    r"(?:fields?|keys?|propert(?:y|ies)|members?|items?|entr(?:y|ies)|elements?|rows?|lines?"
    r"|records?|values?|objects?)"
)
# Words that tell of data left out wherever they stand.
_LEFT_OUT = re.compile(
    r"(?i)\.\.\.|…|\b(?:omit(?:s|ted|ting)?|truncated?|abbreviated|elided|snip(?:ped)?|left out"
    r"|shortened|collapsed|cut(?: (?:off|short|here))?\W*\Z|stays?\b.*\bsame|not? changed?"
    r"|skip(?:s|ped|ping)?|not shown|for brevity|and so (?:on|forth)|etc|continue[sd]?|continuing"
    r"|goes on|go on|ditto|showing|(?:only the )?first \d+|\d+ (?:others|of them)"
    r"|(?:previous|earlier|last|original) (?:answer|response|message|output|input)"
    r"|unchanged|unmodified|as before|\d+ more|(?:the |all )?(?:rest|remaining|others)\W*\Z"
    r"|(?:other|more|additional|further|existing|previous|remaining|rest of the|same|similar)"
    rf" (?:\w+ )?{_DATA}"
    r"|same for|similar(?:ly)? for|todo|tbd|placeholder|(?:go|goes|add|insert|put)\b.*\bhere)\b"
)
# Words that do so where a member or an element could stand.
_INSTEAD = re.compile(
    r"(?i)\b(?:rest|more|remain(?:ing|der|s)?|others?|same|similar(?:ly)?|further|additional"
    r"|existing|previous|earlier|repeat(?:ed|s)?|until|through|up to|fill in|insert|keep|kept"
    rf"|removed|dropped|hidden|your|\d+ (?:\w+ )?{_DATA}|\d+\s*(?:-|–|to|\.\.)\s*\d+)\b"
)
# Data that a comment took in because a line break or a comma went missing.
_SWALLOWED = re.compile(rf"[,\[{{][ \t]*\Z|\A[,:}}\]\"{{\[]|{KEY}|[ \t]{{2,}}[\"\d\[{{-]|\t")
_ADDRESS = re.compile(r"\bhttps?://[^\s\"',]+")
_NUMBER = re.compile(r"\s*[\d.]+\W*\Z")
_EMPTY = re.compile(r"(?i)\b(?:no|none|nothing|empty|not any)\b")


def skip(text: str, position: int, notes: Notes) -> int:
    """Step over white space and comments.

    Raises:
        Unreadable: a comment stands for data.
    """
    while True:
        char = text[position : position + 1]
        if char in _JSON_SPACE and (match := STRICT_SPACE.match(text, position)):
            position = match.end()
            char = text[position : position + 1]
        if char in _JSON_MARKS or char.isalnum():
            return position
        if (match := ANY_SPACE.match(text, position)) and match.end() > position:
            notes.add("white_space", position, "white space JSON does not know")
            position = match.end()
            continue
        end = comment_end(text, position) if char in {"/", "#", "<"} else -1
        if end < 0:
            if char in FULL_WIDTH:
                notes.add("full_width", position, f"`{char}` for `{FULL_WIDTH[char]}`")
            return position
        notes.add("comment", position, f"comment left out: {text[position:end][:60].strip()}")
        position = end


def comment_end(text: str, start: int) -> int:
    """Return where the comment at `start` ends, or -1 where there is none.

    Raises:
        Unreadable: it tells of data left out, may hold some itself, or is never closed.
    """
    match = COMMENT.match(text, start)
    if match is None:
        if text.startswith(("/*", "<!--"), start):
            raise Unreadable("truncated", start, "A comment is never closed.")
        return -1
    body = match[0].strip("/*#<!-> \t\n") if "\n" in match[0] else match[0].lstrip("/*#<!-")
    before = text[max(start - 200, 0) : start].rpartition("\n")[2].strip(" \t")
    line = match[0][0] == "#" or match[0][1] == "/"
    ahead = text[match.end() : match.end() + 200].lstrip()[:1]
    instead = not before or (before[-1] in ",[{" and (not line or ahead in {"]", "}"}))
    left_out = _LEFT_OUT.search(body) or (instead and _INSTEAD.search(body))
    refuse_if(left_out, "elided", start, "A comment says that data was left out.")
    swallowed = (line or "\n" in match[0]) and _SWALLOWED.search(_ADDRESS.sub("", body.rstrip()))
    attached = text[start - 1 : start] in {'"', "'"} and '"' in body
    number = text[:start].rstrip()[-1:].isdigit() and _NUMBER.match(body) if before else None
    unclear = swallowed or attached or number
    refuse_if(unclear, "syntax", start, "It is not clear whether a comment is data.")
    return match.end()


def refuse_only_comments(text: str, start: int, end: int) -> None:
    """Refuse an empty object or list whose comments do not say that it is empty."""
    comments = COMMENT.finditer(text, start, end)
    unsaid = any(not _EMPTY.search(comment[0]) for comment in comments)
    refuse_if(unsaid, "elided", start, "Only a comment stands between the brackets.")
