"""An answer that is a string, a number or a literal: alone, but for what models put around one."""

import re

from graph_retry._output.repair.mend import Document
from graph_retry._output.repair.report import Unreadable, refuse_if
from graph_retry._output.repair.scan import strict_value

_VALUE = r"(?P<value>\"(?:[^\"\\\n]|\\.)*+\"|-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null)"
_LABEL = (
    r"(?:\*\*)?(?i:(?:(?:the|final|my|here is the) )*(?:answer|result|output|json|label|response))"
    r"(?:\*\*)?(?::|\s)(?:\*\* )?"
)
# `Answer: "spam"`, `**true**`, `<answer>42</answer>`, `42</s>`.
_ALONE = re.compile(
    rf"\s*+(?:<[\w|-]+>\s*+)*+(?:{_LABEL}\s*+)?(?P<mark>`|\*\*|){_VALUE}(?P=mark)"
    r"\s*+(?:(?:</?[|\w-]+>|\[/?[A-Z]+\])\s*+)*+\Z"
)
# The contents of the only fence, with its tag: prose may stand around that.
_FENCED = re.compile(
    rf"[^`~]*+(?P<fence>```|~~~)(?i:json)[ \t\r]*\n\s*+{_VALUE}\s*+(?P=fence)[^`~]*+\Z"
)


def lone_scalar(text: str, start: int, *, complete: bool | None) -> Document:
    """Read the one scalar behind `start`, in a text without a document.

    Raises:
        Unreadable: there is none, or it may go on.
    """
    match = _ALONE.match(text, start) or _FENCED.match(text, start)
    if match is None:
        raise Unreadable("no_json", start, "There is no JSON document in the text.")
    low, high = match.span("value")
    unfinished = complete is False and high == len(text.rstrip())
    refuse_if(unfinished, "truncated", high, "The value may go on.")
    try:
        return Document(strict_value(match["value"]), low, high, json=match["value"])
    except ValueError:
        raise Unreadable("syntax", low, "This is no JSON value.") from None
