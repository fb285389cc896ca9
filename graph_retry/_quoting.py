"""Build the texts that this library adds to prompts.

A text stands between two marks (a frame), so that it can be removed from the prompt later. Quoted
texts of models and errors are data: they cannot contain a mark or end their own quotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from graph_retry.records import Issue


class Frame(NamedTuple):
    """The first and the last line of a text that this library adds to a prompt."""

    begin: str
    end: str


FEEDBACK = Frame("[feedback on your last answer]", "[end of feedback]")
COMMENT = Frame("[comment of a reviewer]", "[end of comment]")
"""The frame of a person's comment, if the model gave no answer that feedback could quote."""

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
    """Return a text of the lines, between the two marks of a frame."""
    return "\n".join([frame.begin, *lines, frame.end])


def unframed(frame: Frame, text: str) -> str:
    """Remove a framed part from a text, including the empty lines around it.

    Example:
        >>> unframed(FEEDBACK, "Who? " + framed(FEEDBACK, ["1. /age: missing"]))
        'Who? '
    """
    block = f"{re.escape(frame.begin)}.*?{re.escape(frame.end)}"
    return re.sub(rf"^{block}\n*|\n*{block}", "", text, flags=re.DOTALL)


def tame(text: str) -> str:
    """Remove all frame marks from a text, so that it cannot end its frame; escape surrogates."""
    for mark in (*FEEDBACK, *COMMENT, *LESSONS, *CORRECTIONS):
        text = text.replace(mark, "[…]")
    return text.encode("utf-8", "backslashreplace").decode()


def fenced(text: str) -> str:
    """Fence a text with more backticks than it contains, so that it cannot end its quotation.

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
    """Write an issue as one line with a hint. `received=False` leaves out the model's value."""
    details = [f"expected: {issue['expected']}"] if issue["expected"] else []
    if received and issue["received"]:
        details.append(f"received: {issue['received']}")
    in_brackets = f" ({'; '.join(details)})" if details else ""
    text = f"{issue['path'] or 'the whole answer'}: {issue['message']}{in_brackets}"
    hint = _HINTS.get(issue["code"])
    line = " ".join(text.split())[:400].replace("```", "'''")
    return tame(line) + (f"; {hint}" if hint else "")
