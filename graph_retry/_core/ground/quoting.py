"""Quote texts of models and errors as data, in prompts and in reviews.

This library puts each text that it adds to a prompt between two marks, which are called a frame.
The marks tell the model where the text begins and ends. The library never uses a mark to find or
remove a text. A quoted text can neither contain a mark nor end its own quotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from graph_retry._core.ground.issues import cut
from graph_retry.lossless._ground import lazy
from graph_retry.records import Issue

# The beginnings of links, images and HTML.
_ACTIVE = lazy(r"\](?=[(\[])|<(?=[a-zA-Z/!?])")
_CONTROL = lazy("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Frame(NamedTuple):
    """The two marks that this library puts around a text in a prompt: its first and last line."""

    begin: str
    end: str


FEEDBACK = Frame("[feedback on your last answer]", "[end of feedback]")
COMMENT = Frame("[comment of a reviewer]", "[end of comment]")
"""The frame of a person's comment if the attempt has no answer to quote in feedback."""

LESSONS = Frame("[lessons from earlier steps]", "[end of lessons]")
CORRECTIONS = Frame("[corrections of earlier answers]", "[end of corrections]")

_HINTS = {
    "missing": "add this field",
    "required": "add this field",
    "extra_forbidden": "leave this field out",
    "additionalProperties": "leave this field out",
    "enum": "use one of the expected values",
    "literal_error": "use one of the expected values",
    "invalid_json": "close every bracket and quote, and write nothing around the JSON",
}


def framed(frame: Frame, lines: Iterable[str]) -> str:
    """Return the lines as one text between the two marks of a frame.

    Example:
        >>> print(framed(LESSONS, ["- /total: a number is wanted"]))
        [lessons from earlier steps]
        - /total: a number is wanted
        [end of lessons]
    """
    return "\n".join([frame.begin, *lines, frame.end])


def tame(text: str) -> str:
    """Change marks such as `[end of feedback]`, so that they end no quotation; escape surrogates.

    Example:
        >>> tame("[end of feedback]")
        '[ end of feedback]'
    """
    for mark in (*FEEDBACK, *COMMENT, *LESSONS, *CORRECTIONS):
        text = text.replace(mark, f"[ {mark[1:]}")
    return text.encode("utf-8", "backslashreplace").decode()


def fenced(text: str) -> str:
    """Put a text in a code block with a fence that is longer than any fence in the text.

    Example:
        >>> print(fenced("```json"))
        ````
        ```json
        ````
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{tame(text)}\n{fence}"


def issue_line(issue: Issue, *, received: bool = True) -> str:
    """Write an issue as one line with a hint. With `received=False`, the model's value is left out.

    Example:
        >>> issue_line({"path": "/n", "message": "Field required", "code": "missing"})
        '/n: Field required; add this field'
    """
    wanted, came = issue.get("expected"), issue.get("received")
    details = [f"expected: {wanted}"] if wanted else []
    if received and came:
        details.append(f"received: {came}")
    in_brackets = f" ({'; '.join(details)})" if details else ""
    text = f"{issue.get('path') or 'the whole answer'}: {issue['message']}{in_brackets}"
    hint = _HINTS.get(issue.get("code", ""))
    line = " ".join(text.split())[:400].replace("```", "'''")
    return tame(line) + (f"; {hint}" if hint else "")


def one_line(text: str, limit: int) -> str:
    r"""Put the beginning of a text on one line, with code, links, images and HTML disabled.

    Example:
        >>> one_line("429\n [quota](http://a.example)", 100)
        '429 [quota] (http://a.example)'
    """
    return inert(" ".join(cut(text, limit).replace("`", "'").split()))


def inert(text: str) -> str:
    """Disable Markdown's links, HTML and code, and `$`, which some clients render as a formula."""
    text = _ACTIVE.sub(r"\g<0> ", _CONTROL.sub("\ufffd", text))
    return text.replace("```", "'''").replace("$", "\uff04")


def quoted(text: str) -> str:
    """Put a text in a Markdown code block that the text cannot close."""
    return "```text\n" + _CONTROL.sub("\ufffd", text).replace("```", "'''") + "\n```"
