"""Recognize the tokens of broken JSON: white space, comments, scalars and escapes."""

import math
import re
from typing import Any

from graph_retry._output.reading.strict import finite
from graph_retry._patterns import lazy

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
TRIPLE = lazy(r"(\"\"\"|''')(?![\"'])((?:[^\\]|\\.)*?)\1(?![\"'])", re.DOTALL)
STRICT_STRING = lazy(r"\"([^\"\\\x00-\x1f]*+)\"")
STRICT_KEY = lazy(r"\"([^\"\\\x00-\x1f]*+)\":(?=[ \"\d\[{tfn-])")
BARE_KEY = lazy(r"(?:(?:[^\W\d]|\$)[\w$.\-]*+|\d+|@\w+)(?=\s*[:=：])")
ELISION = lazy(r"\.\.\.+|…")
PLACEHOLDER = lazy(r"<[^<>\n]{0,80}>|\{\{\s*\w+\s*\}\}|\$\{[^{}\n]*\}")
EMPHASIS = lazy(
    r"(?<![\w*])(\*{1,3}|_{1,3}|~~)(?:\"[^\"\n]*\"|[^\W_][\w.+-]*?)(\1)(?=\s*[,:}\]\n])"
)
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
_PLAIN = {"true": True, "false": False, "null": None}
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
    r"|false)\b"
    r"|[\d.]+(?:\s*[*/%+^-]+\s*[\w.]+)+\Z|\w+\s*[*/+]\s*\w+\Z"
)
_DATE = lazy(r"\d{4}-\d\d-\d\d")
NAME = lazy(r"[A-Za-z_$][\w$.]*\Z")
LEFT_OUT = lazy(
    r"(?i)\.\.\.|…|\b(?:omit\w*|truncated?|abbreviated|elided|snip(?:ped)?|left out|shortened"
    r"|not shown"
    r"|collapsed|unchanged|ditto|as before|for brevity|skip\w*|cut|and so (?:on|forth)|etc"
    r"|\d+ (?:more|others)"
    r"|(?:the )?(?:rest|remaining|others)(?:\W*\Z| of\b| omitted)|(?:same|similar(?:ly)?) (?:as"
    r"|for)|stay the same"
    r"|(?:first|last) \d+ only|go(?:es)? here|see previous"
    r"|(?:other|more|additional|existing|previous|remaining) (?:\w+ )?(?:fields?|keys?|items?"
    r"|entr(?:y|ies)"
    r"|elements?|rows?|records?|values?|users?|objects?)|\w+ \d+ ?(?:-|–|to|\.\.)\s*\d+)\b"
    r"|\A\W*more\W*\Z|省略|以此类推"
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
BAD_ESCAPE = lazy(r"(?<!\\)(?:\\\\)*\\(?:[^\"\\/bfnrtu]|u(?![0-9a-fA-F]{4}))")
RAW_CONTROL = lazy(r"[\x00-\x1f]")


def scalar(token: str) -> tuple[str, Any] | None:
    """Return the row in `costs` of a number or literal ("" for strict JSON), and its value."""
    if token in _PLAIN:
        return "", _PLAIN[token]
    word = token.lower().replace("infinity", "inf")
    if word in _LITERALS:
        value = _LITERALS[word]
        return ("non_finite" if isinstance(value, float) else "literal_spelling"), value
    row = "" if NUMBER.fullmatch(token) else "number_format"
    if len(token) > 400 or not token.isascii():
        return None
    if _RADIX.match(token):
        return row, int(token, 0)
    if not _LOOSE.match(token):
        return None
    if any(char in ".eE" for char in token):
        try:
            return row, finite(token)
        except ValueError:
            return None
    return row, int(token)


def is_word(text: str, at: int) -> bool:
    """Return whether a plain word is at `at` that resembles no number, literal or code."""
    token = TOKEN.match(text, at)
    if token is None or text[token.end() : token.end() + 2][1:].isalnum():
        return False
    return word_row(token[0].strip()) == ("unquoted_value", "")


def word_row(token: str) -> tuple[str, str]:
    """Return a word's row in `costs`, and "odd_word" if it resembles a number or a literal."""
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
        return "unreadable", ""
    if resembles or _NUMBER_LIKE.fullmatch(token) or (digits and digits >= len(token) - 2):
        return "unquoted_value", "odd_word"
    if _FILLER.match(token) or LEFT_OUT.search(token):
        return "placeholder", ""
    return "unquoted_value", "" if _WORDY.fullmatch(token) else "odd_word"


def comment_row(body: str) -> str:
    """Return the row in `costs` for a comment that may hold data or replace it, or ""."""
    if LEFT_OUT.search(body) or _CONTESTED.search(body) or "/*" in body:
        return "elided"
    is_torn = body.count('"') % 2 or any(body.count(a) != body.count(b) for a, b in ("{}", "[]"))
    return "data_comment" if is_torn or _DATA.search(body) else ""


def decode(raw: str) -> str | None:
    """Resolve the escapes of a string; `None` if a backslash may be an escape or a character."""
    if "\\" not in raw:
        return raw
    is_pattern = _PATTERN.search(raw) is not None
    kept = resolved = False

    def resolve(match: re.Match[str]) -> str:
        nonlocal kept, resolved
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
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
    if kept and resolved:
        return None
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
