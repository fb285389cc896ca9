"""The smallest things: white space, comments, quotes, and what may follow a string."""

import re

from graph_retry.repair.report import Notes, Unreadable

INVISIBLE = "\u200b-\u200f\u2060-\u2064\ufeff\u00ad"
SPACE = rf"(?:[\s{INVISIBLE}]|\\[nrt])*+"
QUOTE = "[\"'`“”„‟‘’‚‛＂＇]"
STRICT_SPACE = re.compile(r"[ \t\r\n]*+")
ANY_SPACE = re.compile(SPACE)
COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/|<!--.*?-->", re.DOTALL)
ELLIPSIS = re.compile(r"\.\.|…")
END_MARK = re.compile(r"```|~~~|</|<\|")

# Words by which a writer says that something is not there.
ELIDED = re.compile(
    r"\.\.\.|…|\b(?:rest|omit(?:s|ted|ting)?|more|remaining|remainder|truncated?|etc|continue[sd]?"
    r"|continuing|so on|so forth|similar(?:ly)?|repeat(?:ed|s)?|additional|others?|same|snip(?:ped)?"
    r"|abbreviated|elided|skip(?:s|ped|ping)?|left out|not shown|placeholder|todo|tbd|further"
    r"|your|insert|fill in|add \w+ here|until|through|up to|\d+ (?:items|entries|rows|records)"
    r"|\d+\s*(?:-|–|to)\s*\d+)\b",
    re.IGNORECASE,
)

FULL_WIDTH = {
    "｛": "{", "｝": "}", "［": "[", "］": "]", "：": ":", "，": ",", "、": ",", "（": "(", "）": ")",
    "＝": "=",
}  # fmt: skip

KEY = (
    rf"(?:{QUOTE}(?:[^\n\"'`“”„‟‘’‚‛＂＇]|(?<=\w)['’](?=\w)){{0,200}}{QUOTE}"
    rf"|[^\W\d][\w$.\-]*+){SPACE}(?:[:：=＝])"
)
KEY_AHEAD = re.compile(KEY)
OPENING_KEY = re.compile(rf"{SPACE}{QUOTE}[^\n\"“”＂:,{{}}\[\]]{{0,200}}{QUOTE}{SPACE}[:：]")


def char_at(text: str, position: int) -> str:
    """Return the structural character at `position`, `""` at the end or at a closing fence."""
    char = text[position : position + 1]
    if char in {"`", "~", "<"} and END_MARK.match(text, position):
        return ""
    return FULL_WIDTH.get(char, char)


def skip(text: str, position: int, notes: Notes) -> int:
    """Step over white space and comments; a comment that tells of missing data is refused."""
    while True:
        match = STRICT_SPACE.match(text, position)
        position = match.end() if match else position
        char = text[position : position + 1]
        if char.isalnum() or char in {'"', "{", "}", "[", "]", ",", ":", ""}:
            return position
        if match := ANY_SPACE.match(text, position):
            if match.end() > position:
                notes.add("white_space", position, "white space JSON does not know")
                position = match.end()
                continue
        if char not in {"/", "#", "<"}:
            return position
        match = COMMENT.match(text, position)
        if match is None:
            if text.startswith(("/*", "<!--"), position):
                raise Unreadable("truncated", position, "A comment is never closed.")
            return position
        if ELIDED.search(match[0]):
            raise Unreadable("elided", position, "A comment says that something was left out.")
        notes.add("comment", position, f"comment left out: {match[0][:60].strip()}")
        position = match.end()


_OPEN_END = rf"\Z|//|/\*|#|<!--|```|~~~|</|<\||\.\.|…|[:：=＝]|[\]}}）)］｝]|\+{SPACE}{QUOTE}"
# A comma before a word that is no key belongs to a sentence.
_SENTENCE = rf"[^\W\d][\w$.\-' ]*+[\"”]?{SPACE}(?![:：=＝\w$.\-' \"”])"
_CLOSED = rf"[}}\]｝］](?:[ \t]*\n|{SPACE}(?:[,，}}\]｝］]|\Z|```|~~~|//|#|/\*|[<;)])|\s+[A-Z])"

# What may follow the closing quote, by the slot the string stands in.
FOLLOW = {
    "key": re.compile(
        rf"{SPACE}(?:\Z|[:：=＝,，}}\]]|->|{QUOTE}|[\[{{(\d-]|(?:true|false|null|None)\b)", re.I
    ),
    "member": re.compile(
        rf"{SPACE}(?:{_OPEN_END}|[,，、](?!{SPACE}{_SENTENCE})|(?={QUOTE}|(?<=\s)){KEY})"
        rf"|[ \t]*\n{SPACE}{QUOTE}"
    ),
    "element": re.compile(
        rf"{SPACE}(?:{_OPEN_END}|[,，、])|\s{SPACE}(?:{QUOTE}|[\[{{(\d-]|(?:true|false|null)\b)", re.I
    ),
}
# The same once a quote inside the string has shown that its quotes are not escaped.
FOLLOW_STRONG = {
    "key": re.compile(rf"{SPACE}[:：=＝]"),
    "member": re.compile(
        rf"{SPACE}(?:\Z|[,，]{SPACE}(?:{KEY}|[}}\]｝］])|{_CLOSED})|[ \t]*\n{SPACE}{KEY}"
    ),
    "element": re.compile(
        rf"{SPACE}(?:\Z|[,，]{SPACE}(?:{QUOTE}|[\[{{\]］]|-?\d|(?:true|false|null)\b)|{_CLOSED})"
    ),
}
