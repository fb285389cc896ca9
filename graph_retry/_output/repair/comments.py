"""White space and comments between the parts of a document.

A comment that only explains the data is left out; one that stands for data is refused.
"""

import re

from graph_retry._output.repair.report import Notes, Unreadable, refuse_if
from graph_retry._output.repair.scan import ANY_SPACE, FULL_WIDTH, KEY, after_strict_space

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
# The same in other languages than English, in lower case.
LEFT_OUT_ELSEWHERE = re.compile(
    r"\b(?:und so weiter|usw|weggelassen|ausgelassen|gekürzt|et ainsi de suite|tronquée?s?"
    r"|omis(?:e|es)?|abrégée?s?|y así sucesivamente|(?:omitid|truncad)[oa]s?"
    r"|e assim por diante|e così via|omess[oaie]|troncat[oaie]|и так далее|и т\. ?д|опущен\w*"
    r"|сокращен\w*)\b|省略|以此类推|以下同様|생략|이하 동일"
)
# Words that do so where a member or an element could stand.
_INSTEAD = re.compile(
    r"(?i)\b(?:rest|more|remain(?:ing|der|s)?|others?|same|similar(?:ly)?|further|additional"
    r"|existing|previous|earlier|repeat(?:ed|s)?|until|through|up to|fill in|insert|keep|kept"
    rf"|removed|dropped|hidden|your|\d+ (?:\w+ )?{_DATA}|\d+\s*(?:-|–|to|\.\.)\s*\d+)\b"
    r"|其余|其他|剩余|残り|나머지"
)
# Words that give another value: `// should be 2`, `// or 2`, `// wrong`.
_CONTESTED = re.compile(
    r"(?i)\A\W*(?:wrong|incorrect|fixme|fix)\b|\A\W*or (?:[\"'\d-]|true|false|null)"
    r"|\bshould (?:be|read|say) (?:[\"'\d-]|true\b|false\b|null\b)"
)
# Data that a comment took in because a line break or a comma went missing, or a quote: `{#tag": 1`.
_SWALLOWED = re.compile(
    rf"[,\[{{][ \t]*\Z|,[ \t]*(?://|#|/\*)|\A[,:}}\]\"{{\[]|\A[ \t]*[:=]|{KEY}"
    r"|(?<![\"'])[\"'][ \t]*[:=]|[ \t]{2,}[\"\d\[{-]|\t"
    r"|(?<=\w)(?:[\"'][^\"'\s]*[\"']\s*\Z|\{[^{}]*\})"
)
_ADDRESS = re.compile(r"\bhttps?://[^\s\"',]+")
_NUMBER = re.compile(r"\s*[\d.]+\W*\Z")
_VALUE = re.compile(r"(?i)\s*(?:-?\.?\d[\d.e+-]*|true|false|null|none|\".*\")\s*\Z")
_LAST = re.compile(r"(?i)(?:[\d\"'\]}]|true|false|null|none)\s*\Z")
_LEADING_COMMA = re.compile(r"\n[ \t]*,")
_EMPTY = re.compile(r"(?i)\b(?:no|none|nothing|empty|not any)\b")


def skip(text: str, position: int, notes: Notes) -> int:
    """Step over white space and comments.

    Raises:
        Unreadable: a comment stands for data.
    """
    while True:
        char = text[position : position + 1]
        if char in _JSON_SPACE:
            position = after_strict_space(text, position)
            char = text[position : position + 1]
        if char in _JSON_MARKS or char.isalnum():
            return position
        if (space := ANY_SPACE.match(text, position)) and space.end() > position:
            # Where it is no habit, such a character may have left an empty string: `""\u200b`.
            beside = {text[position - 2 : position], text[space.end() : space.end() + 2]}
            is_doubtful = beside & {'""', "''"} and _is_rare(text, char)
            refuse_if(is_doubtful, "ambiguous", position, "White space, or text of a string.")
            notes.add("white_space", position, "white space JSON does not know")
            position = space.end()
            continue
        end = comment_end(text, position) if char in {"/", "#", "<"} else -1
        if end < 0:
            if char in FULL_WIDTH:
                notes.add("full_width", position, f"`{char}` for `{FULL_WIDTH[char]}`")
            return position
        notes.add("comment", position, f"comment left out: {text[position:end][:60].strip()}")
        position = end


def _is_rare(text: str, char: str) -> bool:
    """Tell whether `char` occurs less than four times."""
    position = -1
    for _ in range(4):
        position = text.find(char, position + 1)
        if position < 0:
            return True
    return False


def comment_end(text: str, start: int) -> int:
    """Return where the comment at `start` ends, or -1 where there is none.

    Raises:
        Unreadable: it tells of data left out, may hold some itself, or is never closed.
    """
    comment = COMMENT.match(text, start)
    if comment is None:
        if text.startswith(("/*", "<!--"), start):
            raise Unreadable("truncated", start, "A comment is never closed.")
        return -1
    end, has_lines = comment.end(), "\n" in comment[0]
    body = comment[0].strip("/*#<!-> \t\n") if has_lines else comment[0].lstrip("/*#<!-")
    is_line = comment[0].startswith(("//", "#"))  # it ends with the line, closed by nothing else
    before = text[max(start - 200, 0) : start]
    line_before = before.rpartition("\n")[2].strip(" \t")
    # `[1, 2, /* 3 to 9 */]`: where a member or an element could stand, more words tell that one was
    # left out. `[1, // the rest of it`, with another one on the next line, speaks of the 1.
    is_last = text[end : end + 200].lstrip()[:1] in {"]", "}"}
    is_in_place = not line_before or (line_before[-1] in ",[{" and (not is_line or is_last))
    left_out = _LEFT_OUT.search(body) or (is_in_place and _INSTEAD.search(body))
    left_out = left_out or LEFT_OUT_ELSEWHERE.search(body.lower())
    refuse_if(left_out, "elided", start, "A comment says that data was left out.")
    refuse_if(_CONTESTED.search(body), "ambiguous", start, "A comment contests the data.")
    # `"a": 1, // note "b": 2`: a line break is lost, and with it a member.
    may_swallow = is_line or has_lines
    swallowed = may_swallow and _SWALLOWED.search(_ADDRESS.sub("", body.rstrip()))
    # `"a"# b"`: the mark may be text of a string that ends later.
    in_string = before[-1:] in {'"', "'", "`"} and ('"' in body or before[-1:] in body)
    # `7 // 2`: a calculation.
    in_number = line_before and before.rstrip()[-1:].isdigit() and _NUMBER.match(body)
    # `{// no"`: the mark may be text of a string that lost its opening quote.
    has_half_a_string = is_line and body.count('"') % 2
    # `#5` on a line of its own, `1,#5`: an element that the mark made a comment of.
    is_value = (not line_before or before[-1:] == ",") and _VALUE.match(body)
    # `/* a *, 2 /* b */`: the end of the first of two is broken. `// 2}`, `# 'c']`: the mark came
    # before the rest of the data.
    in_another = not is_line and (comment[0].find("/*", 2) > 0 or not body.strip())
    in_another = in_another or (is_line and "*/" in comment[0])
    closes = is_line and any(body.count(b) > body.count(a) for a, b in ("{}", "[]"))
    # `"a" /* , b */`: it took in a comma. `[1, // one 2` before the closing bracket, and
    # `[1 // one, 2` where commas start lines: the last element.
    ends_list = is_line and text[end : end + 200].lstrip()[:1] == "]" and _LAST.search(body)
    goes_on = before.rstrip()[-1:] == "," or ("," in body and _LEADING_COMMA.search(text))
    takes_in = body.lstrip()[:1] == "," or (ends_list and goes_on)
    is_unclear = swallowed or in_string or in_number or has_half_a_string or is_value
    is_unclear = is_unclear or in_another or closes or takes_in
    refuse_if(is_unclear, "syntax", start, "It is not clear whether a comment is data.")
    return end


def refuse_only_comments(text: str, start: int, end: int) -> None:
    """Refuse an empty object or list whose comments do not say that it is empty."""
    comments = COMMENT.finditer(text, start, end)
    unsaid = any(not _EMPTY.search(comment[0]) for comment in comments)
    refuse_if(unsaid, "elided", start, "Only a comment stands between the brackets.")
