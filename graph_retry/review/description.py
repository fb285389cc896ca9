"""The text of a question that clients show: what failed, what is known of it, how to answer.

The first 65 characters are what Agent Inbox previews in its list. All that comes from a model or a
provider stands quoted, so that none of it reads like a part of the question.
"""

import re
from typing import Any

from graph_retry.forms.excerpt import excerpt
from graph_retry.review.example_answers import example_answers
from graph_retry.review.question import Question
from graph_retry.validate.issues import cut, format_issues, literal

MAX_DESCRIPTION = 4_000
"""Characters of a description."""

_SHOWN_CHANGES = 5
_LONGEST_RUN = 10
_LEADS = {
    "approve": "Approve: call again with the params shown (the suggestion, if there is one).",
    "edit": "Edit: call again with some of them changed; the others stay.",
    "reject": "Reject: stop here.",
    "respond": "Respond: give the output by hand.",
}


def describe(question: Question) -> str:
    """Write the description, in Markdown, of at most 4,000 characters."""
    error = f"{question.failure['type']}: {one_line(question.failure['message'], 300)}"
    parts = [f"{error} — {one_line(question.name, 100)}, attempt {question.attempt}."]
    if question.problem:
        parts.insert(0, f"Your answer was not applied: {excerpt(question.problem, 600)}")
    if question.note:
        parts.append(excerpt(question.note, 300))
    if question.issues:
        parts.append(f"Issues:\n{_quote(excerpt(format_issues(question.issues), 600))}")
    if question.diff:
        lines = [_change_line(change) for change in question.diff[:_SHOWN_CHANGES]]
        more = len(question.diff) - len(lines)
        lines += [f"… {more} more"] if more else []
        what = "Changed for this attempt" if question.suggested is None else "Suggested changes"
        parts.append(f"{what}:\n" + _quote("\n".join(lines)))
    if question.raw_output is not None:
        parts.append(f"The model wrote:\n{_quote(excerpt(question.raw_output, 400))}")
    return "\n\n".join([*parts, _how_to_answer(question)])


def one_line(text: str, limit: int) -> str:
    r"""Put a bounded excerpt of a text on one line, in which it opens no code block.

    Example:
        >>> one_line("429\n quota", 100)
        '429 quota'
    """
    return " ".join(excerpt(text, limit).replace("`", "'").split())


def _how_to_answer(question: Question) -> str:
    lines = ["How to answer, as JSON:"]
    lines += [f"- {_LEADS[kind]} `{text}`" for kind, text in example_answers(question).items()]
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


def _change_line(change: dict[str, Any]) -> str:
    before, after = literal(change.get("before"), 60), literal(change.get("after"), 60)
    return f"{cut(str(change.get('path')), 60)}: {before} → {after}"


def _quote(text: str) -> str:
    """Quote a text as data: a code block whose fence the text cannot close."""
    text = re.sub(f"`{{{_LONGEST_RUN},}}", "`" * _LONGEST_RUN, text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
