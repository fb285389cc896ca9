"""The text of a question that clients show: what failed, what is known of it, how to answer.

The first 65 characters are what Agent Inbox previews in its list. All that comes from a model or a
provider stands quoted, so that none of it reads like a part of the question.
"""

from __future__ import annotations

import json
import re
from typing import Any

from graph_retry._issues import cut, excerpt, format_issues, literal
from graph_retry._review.forms.field_kinds import inner_fields
from graph_retry._review.question import Question

MAX_DESCRIPTION = 4_000
"""Characters of a description."""

# What makes a link, an image or HTML; and control characters, those that turn text around included.
_ACTIVE = re.compile(r"\](?=[(\[])|<(?=[a-zA-Z/!?])")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def describe(question: Question) -> str:
    """Write the description, in Markdown, of at most 4,000 characters."""
    error = f"{question.failure['type']}: {one_line(question.failure['message'], 300)}"
    parts = [f"{error} — {one_line(question.name, 100)}, attempt {question.attempt}."]
    if question.problem:
        what, _, details = cut(question.problem, 600).partition("\n")
        parts.insert(0, f"Your answer was not applied: {_inert(what)}")
        parts[1:1] = [_quote(details)] if details else []
    if question.note:
        parts.append(one_line(question.note, 300))
    if question.expires_at:
        parts.append(f"Answer before {question.expires_at}.")
    if question.issues:
        parts.append(f"Issues:\n{_quote(cut(format_issues(question.issues), 600))}")
    if question.diff:
        lines = [
            f"{cut(str(change.get('path')), 60)}: {literal(change.get('before'), 60)} → "
            f"{literal(change.get('after'), 60)}"
            for change in question.diff[:5]
        ]
        more = len(question.diff) - len(lines)
        lines += [f"… {more} more"] if more else []
        what = "Changed for this attempt" if question.suggested is None else "Suggested changes"
        parts.append(f"{what}:\n" + _quote("\n".join(lines)))
    if question.raw_output is not None:
        parts.append(f"The model wrote:\n{_quote(excerpt(question.raw_output, 400))}")
    return "\n\n".join([*parts, _how_to_answer(question)])


def one_line(text: str, limit: int) -> str:
    r"""Put the beginning of a text on one line, in which it makes no code, link, image or HTML.

    Example:
        >>> one_line("429\n [quota](http://a.example)", 100)
        '429 [quota] (http://a.example)'
    """
    return _inert(" ".join(cut(text, limit).replace("`", "'").split()))


def _inert(text: str) -> str:
    return _ACTIVE.sub(r"\g<0> ", _CONTROL.sub("\ufffd", text)).replace("```", "'''")


def _how_to_answer(question: Question) -> str:
    free = [{name: each} for name, each in question.shown.items() if name not in question.locked]
    shown = (field for field in free if len(_text(field)) <= 120 and "`" not in _text(field))
    params = next(shown, dict[str, Any]())
    schema = question.output_schema or {}
    fields = ", ".join(f"{_text(name)}: …" for name in inner_fields(schema, schema)[0])
    output = f"{{{fields}}}" if 0 < len(fields) <= 300 and "`" not in fields else "…"
    ways = {
        "approve": "Approve: call again with the params shown (the suggestion, if there is one). "
        '`{"type": "approve"}`',
        "edit": "Edit: call again with some of them changed; the others stay. "
        f"`{_text({'type': 'edit', 'params': params})}`",
        "reject": 'Reject: stop here. `{"type": "reject", "message": "why to stop"}`',
        "respond": f'Respond: give the output by hand. `{{"type": "respond", "output": {output}}}`',
    }
    lines = ["How to answer, as JSON:", *(f"- {ways[kind]}" for kind in question.offered)]
    if "edit" in question.offered:
        lines.append("In a form, write `null` to clear a field.")
        if question.locked:
            names = one_line(", ".join(question.locked), 200)
            lines.append(f"Locked, so leave as shown: {names}.")
    if "reject" in question.offered and "approve" in question.offered:
        lines.append("In a chat or inbox a rejection needs a reason: an empty box sends *approve*.")
    if "respond" in question.offered:
        lines.append("In Agent Inbox, paste the JSON of a response into the response box.")
    return "\n".join(lines)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _quote(text: str) -> str:
    """Quote a text as data, in a code block that it cannot close."""
    return "```text\n" + _CONTROL.sub("\ufffd", text).replace("```", "'''") + "\n```"
