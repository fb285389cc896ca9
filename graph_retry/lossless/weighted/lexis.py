"""Recognize the tokens of broken JSON, and write them as strict JSON.

To add a spelling that can be read, add a row to `SPELLINGS` (see `moves` for the modes), and a row
with the spelling's cost to `costs`.
"""

import json
import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.strict import BACKSLASH, DRIVE, LAST_B, LITERAL, ODD_ESCAPE, finite

_ODD = "\xa0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f-\u2064\u3000\ufeff\xad\x0b\x0c"
SPACE = lazy(rf"[ \t\r\n]*+(?:(?:[{_ODD}]|\\[nrt](?![A-Za-z]))[ \t\r\n]*+)*+")
BLANK = " \t\r\xa0\u3000\u200b\u200c\u200d\u2060\ufeff"
EDGES = BLANK + "\n\f\v\u200e\u200f"
STRICT_SPACE = lazy(r"[ \t\r\n]*+")
COMMENT = lazy(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)
FULL_WIDTH = dict(zip("｛｝［］：，、（）＝", "{}[]:,,()=", strict=True))
CLOSERS = {
    '"': '"”', "'": "'’", "`": "`", "“": '”"“', "„": '“”"', "‘": "’'", "’": "’'",
    "＂": '＂"',
}  # fmt: skip
QUOTE_ROWS = {'"': "", "'": "single_quotes", "`": "backticks"}
UNTIL = {q: lazy(rf"(?:[^\\{c}]|\\.)*+", re.DOTALL) for q, c in CLOSERS.items()}
TRIPLE = lazy(r"(\"\"\"|''')(?![\"'])(?P<string>(?:[^\\]|\\.)*?)\1(?![\"'])", re.DOTALL)
_NEXT = r"(?=[ \t\r\n]*+(?:[}\]]|,[ \t\r\n]*+[\"{\[\d\-tfn}\]"
PLAIN = {  # Keys and values in quotes, and other values, that have only one likely reading.
    '"k': lazy(r"\"(?P<string>[^\"\\\x00-\x1f]*+)\":(?=[ \"\d\[{tfn-])"),
    "'k": lazy(r"'(?P<string>[^\"'\\\x00-\x1f]*+)':(?=[ \"'\d\[{tfnTFN-])"),
    '"v': lazy(rf"\"(?P<string>[^\"\\\x00-\x1f]*+)\"{_NEXT}])|[ \t\r]*\n[ \t]*+\"[\w $.\-]+\":)"),
    "'v": lazy(rf"'(?P<string>[^\"'\\\x00-\x1f]*+)'{_NEXT}'TFN]))"),
    "v": lazy(r"(?a)(?:-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?|true|false|null)(?=[]}\n]|,[ \n])"),
}
BARE_KEY = lazy(r"(?P<string>(?:[^\W\d]|\$)[\w$.\-]*+|\d+|@\w+)(?=\s*[:=：])")
ELISION = lazy(r"\.\.\.+|…")
PLACEHOLDER = lazy(r"<[^<>\n]{0,80}>|\{\{\s*\w+\s*\}\}|\$\{[^{}\n]*\}")
OPENING_KEY = lazy(rf"[\s{_ODD}]*(?=(?P<q>[\"'“`])[^\n\"“”:,{{}}\[\]]{{0,200}}[\"'”`]\s*[:：])")
NUMBER = lazy(r"(?a)-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
THOUSANDS = lazy(r"[+-]?[1-9]\d{0,2}(?:,\d{3}){2,}(?:\.\d+)?(?=\s*(?:,\s*\D|[,}]\s*\Z|}|\n))")
TOKEN = lazy(
    rf"(?:[^{_ODD}\s,，、:：{{}}\[\]()（）\"“”'’;=<>`\\｛｝［］*]"
    r"|(?<=\w)['’](?=\w)|[ \t](?!\s|//|#|/\*"
    rf"|[\"'“{{\[,:}}\]]))++"
)
_LOOSE = lazy(
    r"(?ai)[+-]?(?:(?:0|[1-9]\d{0,2}(?:_\d{3})+|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\Z"
)
_RADIX = lazy(r"(?ai)[+-]?0(?:x[\da-f]+|o[0-7]+|b[01]+)\Z")
_LITERALS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None, "nil": None, "nan": math.nan,
    "inf": math.inf, "-inf": -math.inf, "+inf": math.inf,
}  # fmt: skip
_SHORT = {w[:i] + w[i + 1 :] for w in ("true", "false", "null", "none") for i in range(6)}
_WORDY = lazy(
    r"[^\W\d_](?:[\w&!?.\- ]|(?<=\w)['’](?=\w))*|\d{4}-\d\d-\d\d(?:[T ][\d:.]+Z?)?"
    r"|[\w.+-]+@[\w-]+\.[\w.-]+"
)
_NUMBER_LIKE = lazy(
    r"[\d.eE+_\- xX]*|(?i:true|false|null|none)\s*(?:[\d.+-]+|(?i:true|false|null|none))"
)
_FILLER = lazy(
    r"(?i:todo|tbd|xxx|missing|empty|n/?a|placeholder|your\b.*|insert\b.*|same\b.*)\Z"
    r"|[A-Z]+_[A-Z_]+\Z"
)
_CODE = lazy(
    r"(?i:undefined|yes|no|on|off|str(?:ing)?|number|int(?:eger)?|float|bool(?:ean)?|object|array"
    r"|any|self|this)\Z|.*[a-z][A-Z]|.*\w_|[a-z]{2,}\d+\Z|.*\b(?:if|else|not|new|await|null|true"
    r"|false)\b|[\d.]+(?:\s*[*/%+^-]+\s*[\w.]+)+\Z|\w+\s*[*/+]\s*\w+\Z"
)
_DATE = lazy(r"\d{4}-\d\d-\d\d")
NAME = lazy(r"[A-Za-z_$][\w$.]*\Z")
LEFT_OUT = lazy(
    r"(?i)\.\.\.|…|\b(?:omit\w*|truncated?|abbreviated|elided|snip(?:ped)?|left out|shortened|not "
    r"shown|collapsed|unchanged|ditto|as before|for brevity|skip\w*|cut|and so (?:on|forth)|etc"
    r"|\d+ (?:more|others)|(?:the )?(?:rest|remaining|others)(?:\W*\Z| of\b| omitted)|(?:same"
    r"|similar(?:ly)?) (?:as|for)|stay the same|(?:first|last) \d+ only|go(?:es)? here|see previous"
    r"|(?:other|more|additional|existing|previous|remaining) (?:\w+ )?(?:fields?|keys?|items?"
    r"|entr(?:y|ies)|elements?|rows?|records?|values?|users?|objects?)|\w+ \d+ ?(?:-|–|to"
    r"|\.\.)\s*\d+)\b|\A\W*more\W*\Z|省略|以此类推|\b(?:und so weiter|usw|et ainsi de suite|y así "
    r"sucesivamente|и так далее)\b"
)
_CONTESTED = lazy(
    r"(?i)\A\W*(?:wrong|incorrect|fix(?:me)?)\b|\A\W*or (?:[\"'\d-]|true|false|null)"
    r"|\bshould (?:be|read|say) (?:[\"'\d-]|true\b|false\b|null\b)"
)
MEMBER = lazy(r"\A(?://|#).*[\"'”]\s*[:=]")
_DATA = lazy(
    r"[\"'”]\s*[:=]|^[ \t]*[\"\[\]},:]|^[ \t]*[\d.+-]+\s*[,}\]]|[,\[{]\s*\Z|\s{2,}[\"\d\[{-]|\t"
    r"|\A-?[\d.]+\W*\Z|\A(?:true|false|null)\Z"
)
_ESCAPE = lazy(r"(?s)\\(u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_MEANING = dict(zip("\"\\/bfnrt'`_$", "\"\\/\b\f\n\r\t'`_$", strict=True))
_PATTERN = lazy(r"(?<!\\)(?:\\\\)*\\[dDsSwWpPA]")
BAD_ESCAPE = lazy(rf"{ODD_ESCAPE}|{BACKSLASH}(?:[^\"\\/bfnrtu]|u(?![0-9a-fA-F]{{4}}))")
_KEPT = lazy(rf"\\(?:{LITERAL})|{LAST_B}")
_FOREIGN = lazy(rf"{BACKSLASH}(?![bfnrtuxU])[A-Za-z]")
_UNCLEAR = lazy(rf"{BACKSLASH}(?!{LITERAL})[fr](?=[A-Za-z])|\A{DRIVE}\Z")
RAW_CONTROL = lazy(r"[\x00-\x1f]")
_UNUSUAL = lazy(r"[\"\\\x00-\x1f]")


def scalar(token: str) -> tuple[str, str] | None:
    """Return a number's or literal's row in `costs` (or "") and its JSON text, or None."""
    if token in {"true", "false", "null"}:
        return "", token
    word = token.lower().replace("infinity", "inf")
    if word in _LITERALS:
        value = _LITERALS[word]
        row = "non_finite" if isinstance(value, float) else "literal_spelling"
        return row, json.dumps(value)
    if len(token) > 400 or not token.isascii():
        return None
    row = "" if NUMBER.fullmatch(token) else "number_format"
    if _RADIX.match(token):
        return row, str(int(token, 0))
    if not _LOOSE.match(token):
        return None
    if not any(char in ".eE" for char in token):
        return row, str(int(token)) if row else token
    try:
        value = finite(token)
    except ValueError:
        return None
    return row, repr(value) if row else token


def is_word(text: str, at: int) -> bool:
    """Return whether the token at `at` is a word, and does not resemble a number, literal or code.

    A token before a quote may resemble code. Then it is a word, except for a number, a literal, and
    a literal without one of its letters.
    """
    token = TOKEN.match(text, at)
    if token is None or text[token.end() : token.end() + 2][1:].isalnum():
        return False
    if text[token.end() : token.end() + 1] in CLOSERS and token[0][0].isalpha():
        return scalar(token[0]) is None and token[0].lower() not in _SHORT
    return word_row(token[0].strip()) == ("unquoted_value", "")


def word_row(token: str) -> tuple[str, str]:
    """Return a word's row in `costs`, and "odd_word" if it is like a number or literal, else ""."""
    low = token.lower()
    short = (
        {low, *(low[:i] + low[i + 1 :] for i in range(len(low)))} if len(low) < 8 else set[str]()
    )
    resembles = not _SHORT.isdisjoint(short) or any(_NUMBER_LIKE.fullmatch(s) for s in short)
    if len(token) > 300:
        return "code", ""
    digits = sum(map(str.isdigit, token))
    if _CODE.match(token) and not _DATE.match(token):
        return ("placeholder" if _FILLER.match(token) else "code"), ""
    if _NUMBER_LIKE.fullmatch(token) and not _DATE.match(token):
        return ("out_of_range" if NUMBER.fullmatch(token) else "unreadable"), ""
    if resembles or _NUMBER_LIKE.fullmatch(token) or (digits and digits >= len(token) - 2):
        return "unquoted_value", "odd_word"
    if _FILLER.match(token) or LEFT_OUT.search(token):
        return "placeholder", ""
    return "unquoted_value", "" if _WORDY.fullmatch(token) else "odd_word"


def comment_row(body: str) -> str:
    """Return the row of a comment in `costs` if it may contain or replace data, otherwise ""."""
    if LEFT_OUT.search(body) or _CONTESTED.search(body) or "/*" in body:
        return "elided"
    is_torn = body.count('"') % 2 or any(body.count(a) != body.count(b) for a, b in ("{}", "[]"))
    return "data_comment" if is_torn or _DATA.search(body) else ""


@lru_cache(8)  # Each quote inside a string is read in several ways, with the same text before it.
def written(raw: str) -> str | None:
    """Replace the escapes in a string's content, and write the content as strict JSON.

    Return None if a backslash may be an escape or a character.
    """
    if not _UNUSUAL.search(raw):
        return raw
    value = _resolved(raw) if "\\" in raw else raw
    if value is None:
        return None
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return json.dumps(whole, ensure_ascii=False)[1:-1]


def _resolved(raw: str) -> str | None:
    """Replace the escapes in a string's content by their characters; None if one is unclear."""
    is_foreign = _FOREIGN.search(raw) is not None  # Some backslash is surely a character.
    if not is_foreign and _UNCLEAR.search(raw):
        return None
    is_pattern = _PATTERN.search(raw) is not None
    kept = resolved = False
    has_literal = BAD_ESCAPE.search(raw) is not None

    def resolve(match: re.Match[str]) -> str:
        nonlocal kept, resolved
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        is_rare = escape in "fr" and raw[match.end() : match.end() + 1].isalpha()
        is_kept = (has_literal and escape == "b") or (is_foreign and is_rare)
        if is_kept or _KEPT.match(raw, match.start()):
            kept = True
            return match[0]
        if escape in _MEANING:
            resolved |= escape in "bfnrt\\"
            return _MEANING[escape]
        if escape == "\n":
            return ""
        if escape.isascii() and (escape.isalpha() or is_pattern):
            kept = True
            return match[0]
        return escape

    value = _ESCAPE.sub(resolve, raw)
    return None if kept and resolved else value


class Spelling(NamedTuple):
    """A spelling that strict JSON does not allow, such as `=` for a colon.

    where: The modes in which the spelling can occur, one letter each (see `moves`).
    first: The possible first characters of the spelling; empty if any is possible.
    pattern: Matches the spelling. Its group `string` is the content of a string. Its group `word`
        is a number, a literal or a word.
    row: The row in `costs`.
    follows: The mode after the spelling; empty if the mode stays.
    """

    where: str
    first: str
    pattern: re.Pattern[str]
    row: str
    follows: str = ""

    def written(self, match: re.Match[str]) -> str | None:
        """Return the JSON text for a match; None if the match may mean several values."""
        groups = match.groupdict()
        if not groups:
            return ""
        if word := groups.get("word"):
            found = scalar(word)
            if found or word_row(word) != ("unquoted_value", ""):
                return found[1] if found else None
        content = written(word or groups["string"])
        return None if content is None else f'"{content}"'


_MARKED = r"(\*{1,3}|_{1,3}|~~)"
_VALUE = lazy(rf"{_MARKED}(?:\"(?P<string>[^\"\n]*)\"|(?P<word>[^\W_][\w.+-]*?))\1(?=\s*[,}}\]\n])")
_KEY = lazy(rf"{_MARKED}\"?(?P<string>[^\"\n:*~]+?)\"?\1(?=\s*:)")
SPELLINGS = (
    Spelling("femklcab", ".…", ELISION, "elided", "a"),
    Spelling("fem", "*_~", _VALUE, "markdown", "a"),
    Spelling("kl", "*_~", _KEY, "markdown", "c"),
    Spelling("fem", "\"'", TRIPLE, "triple_quotes", "b"),
    Spelling("femkl", "uU", lazy(r"[uU](?=[\"'])"), "python_prefix"),
    Spelling("fem", ",", lazy("(?=[,，、])"), "empty_slot", "a"),
    Spelling("m", "]})", lazy(r"(?=[\]})])"), "empty_slot", "a"),
    Spelling("fem", ":=", lazy("(?<=:)[:=]"), "equals"),
    Spelling("femkl", "<{$", PLACEHOLDER, "placeholder", "a"),
    Spelling("kl", ":=", lazy("(?=[:=])"), "empty_slot", "c"),
    Spelling("kl", ",", lazy("[,，、]"), "extra_comma"),
    Spelling("kl", "", BARE_KEY, "unquoted_key", "c"),
    Spelling("c", "=", lazy("=>?"), "equals", "m"),
)


@lru_cache(1000)
def spellings(mode: str, char: str) -> tuple[Spelling, ...]:
    """Return the rows of `SPELLINGS` that are allowed in a mode and can begin with `char`."""
    return tuple(
        each for each in SPELLINGS if mode in each.where and (not each.first or char in each.first)
    )
