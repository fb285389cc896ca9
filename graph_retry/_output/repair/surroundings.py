"""Whether what surrounds the answers leaves a doubt: that they are data, whole, and all there is.

Prose may surround an answer. What looks like a part of the same data may not: then the document
that was read is only a piece, and to return it would lose the rest.
"""

import html
import re
from functools import lru_cache
from itertools import pairwise

from graph_retry._output.repair.beside import ANSWER_LABEL, check_beside
from graph_retry._output.repair.left_out import tells_of_more
from graph_retry._output.repair.mend import Document
from graph_retry._output.repair.report import RefusalKind, Unreadable
from graph_retry._output.repair.taken_back import IS_PART, is_taken_back

# A member of an object, `"a": 1`, or a bracket beside a colon that stands there for another mark.
_MEMBER = re.compile(
    r"[\"“'][^\"“”'\n]*[\"”']\s*[:：]\s*(?:\\*[\"“'{\[\d-]|(?i:true|false|null|none)\b)"
    r"|(?:[\]}][ \t]*[:：]|\}[ \t]*=)[ \t]*(?:[\"“'{\[\d-]|true|false|null)"
    # `tags{: "L"`: a brace moved away from where the object began.
    r"|[\w\"'][ \t]?\{[ \t]*[:：=]"
)
# `a: 1,` or `, a: 1` on a line of its own.
_FIELD_AND_COMMA = re.compile(
    r"(?m)^[ \t]*,[ \t]*[\w$\"']+[ \t]*:"
    r"|^[ \t]*[\w$]+[ \t]*:[ \t]*(?:[\"'`\d{\[-]|true|false|null).*,[ \t]*(?:$|//|#|/\*)"
)
_JSON_MARK = re.compile(r"[\[\]{}\"“']")
# Brackets as prose has them, `[1]`, `x["a"]` or `{name}`, and those around a CDATA section.
_PROSE_BRACKETS = re.compile(
    r"<!\[CDATA\[|\]\]>|\[[^\[\]{}\n\"]*\]|(?<=\w)\[\"\w*\"\]|\{[^\[\]{}\n]*\}"
)
# A bracket without its partner: a closing one anywhere, an opening one that starts a line.
_LONE_BRACKET = re.compile(r"[\]}]|(?:\A|\n)[ \t]*[\[{]")
# A line in braces, or a key and braces, as broken JSON Lines have; `{name}` is a placeholder.
_BROKEN_LINE = re.compile(r"(?m)^[ \t]*(?:\"[^\"\n]*\"[ \t]*)?\{(?!\w*\}).*\}[ \t]*,?\r?$")
# A line of Python, JavaScript, TypeScript, SQL, C or Java.
_CODE = re.compile(
    r"(?m)^[^\S\n]*(?:def \w+\(|class \w+[:({]|return\b|function\b|SELECT\b|interface \w|type \w+ ="
    r"|for .+:\s*$|if .+:\s*$|#include\b|public \w)"
)
# A line of YAML or TOML: `name: Bob`, `name = "Bob"`, `- Bob`, `[section]`.
_FIELD = re.compile(
    r"(?m)^[^\S\n]*(?:- +)?[\w.-]+ *[:=](?: +\S| *$)|^[^\S\n]*- +\S|^\[[a-z][\w.-]*\]\s*$"
)
# `- tags: ` before the document: an item of a list in Markdown or YAML.
_ITEM_BEFORE = re.compile(r"(?:\A|\n)([ \t]*+[-*•+] ++)([^\n]{0,200})\Z")
_ANSWER_WORDS = (
    "[Aa]ssistant|AI\\b|Answer|Action|Final|Result|Output|JSON|Response|A\\b|Antwort|Ergebnis|Réponse|Résultat"
    "|Respuesta|Resultado|Resposta|Risposta|Ответ|回答|答案|結果|结果"
)
# `tags: ` before the document: its field, unless the word announces an answer.
_FIELD_BEFORE = re.compile(
    rf"(?:\A|\n)[^\S\n]*(?:- +)?(?!{_ANSWER_WORDS})[\w.-]+ *[:=](?:[ \t]+|\n[ \t]+)\Z"
)


def check_surroundings(text: str, answers: list[Document], gaps: list[str]) -> None:
    """Check the text before, between and after the answers, which is cut into `gaps`.

    Raises:
        Unreadable: an answer looks like a piece of something, or more of it was announced.
    """
    for answer, (before, after) in zip(answers, pairwise(gaps), strict=True):
        # `{&quot;a&quot;` is a piece of JSON, but a string may hold entities as they are, too.
        for beside in dict.fromkeys(
            [(before, after), (html.unescape(before), html.unescape(after))]
        ):
            check_beside(text, answer, *beside)
    # Models put the same words around their answers again and again.
    is_short = sum(map(len, gaps)) < 500
    doubt = (_remembered_doubt if is_short else _doubt_around)(tuple(gaps))
    if doubt:
        kind, message = doubt
        raise Unreadable(kind, answers[0].start, message)


def _doubt_around(gaps: tuple[str, ...]) -> tuple[RefusalKind, str] | None:
    """Return what the text around says, or shows, against the answer: that there is more of it."""
    around = html.unescape("\n".join(gaps))
    # `{"a": 1}` and then `(97 more items omitted)`.
    lowered = around.lower()
    if tells_of_more(lowered):
        return "elided", "The text tells of data left out."
    # `{"a": 1}` and then `"b": 2}`: the other half of a document that fell apart.
    json_like = _FIELD_AND_COMMA.search(around) or (
        _JSON_MARK.search(around)
        and (
            _MEMBER.search(around)
            or _BROKEN_LINE.search(around)
            or _LONE_BRACKET.search(_PROSE_BRACKETS.sub("", around))
        )
    )
    if json_like:
        return "ambiguous", "What surrounds the answer looks like JSON, too."
    # `name: Bob` and then `tags: ["a"]`: YAML, of which one value happens to be JSON.
    is_field = _FIELD_BEFORE.search(gaps[0]) and len(_FIELD.findall(around)) > 1
    if is_field or _is_item(gaps) or _CODE.search(around):
        return "no_json", "The brackets belong to code or to another format."
    if is_taken_back(gaps):
        return "ambiguous", "The text takes the answer back, or limits it."
    return ("elided", "The text tells of more parts.") if IS_PART.search(lowered) else None


_remembered_doubt = lru_cache(500)(_doubt_around)


def _is_item(gaps: tuple[str, ...]) -> bool:
    """Tell whether the first answer is one item of a list whose other items are no answers."""
    item = _ITEM_BEFORE.search(gaps[0])
    if item is None or (item[2] and ANSWER_LABEL.search(item[2])):
        return False
    others = ["\n" + gaps[0][: item.start()], *gaps[1:]]
    return any(f"\n{item[1]}" in other for other in others)
