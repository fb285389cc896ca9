"""Write the Markdown text that describes a review in clients.

The text begins with the most important part, because Agent Inbox shows its first 65 characters in
its list. A text from a model or a provider is quoted, so that it cannot look like a part of the
question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from graph_retry._core.ground.issues import cut, excerpt, literal
from graph_retry._core.ground.json import as_text
from graph_retry._core.ground.pictures import noted
from graph_retry._core.ground.quoting import inert, one_line, quoted
from graph_retry._core.ground.wording import whole_sentences
from graph_retry._core.output.validator import format_issues
from graph_retry._core.params.patch import readable_diff
from graph_retry._core.review.decisions import ROWS, form_of, offered
from graph_retry._core.review.forms.restore import object_branches
from graph_retry._core.review.review_record import NOT_APPLIED, Question

MAX_DESCRIPTION = 4_000
"""Maximum characters of a description."""


def describe(question: Question) -> str:
    """Write the description of a question in Markdown, with at most 4,000 characters.

    If the text is too long, all parts are shortened by the same factor. The list of changes gets
    the remaining space.
    """
    how, text = _how_to_answer(question), ""
    for share in (1.0, 0.6, 0.35, 0.2, 0.1):
        room = MAX_DESCRIPTION - len("\n\n".join([*_facts(question, 0, share), how]))
        text = "\n\n".join([*_facts(question, room, share), how])
        if len(text) <= MAX_DESCRIPTION:
            break
    return text


def shown_title(question: Question) -> str:
    """Return the title of a question; after a refused answer, it begins with the reason.

    Some clients confirm every answer with "Success", and show only the title of the next question.
    """
    if not question.problem:
        return question.title
    return f"{NOT_APPLIED}{one_line(question.problem, 120)} — {question.title}"


def _facts(question: Question, room: int, share: float) -> Iterator[str]:
    """Yield the paragraphs about the attempt.

    `room` is the space for the list of changes. `share` (0 to 1) scales the length of each other
    part.
    """

    def most(usual: int) -> int:
        return max(60, int(usual * share))

    if question.problem:
        what, _, details = cut(question.problem, most(600)).partition("\n")
        yield f"Your answer was not applied: {inert(what)}"
        if details:
            yield quoted(details)
    which = f"{one_line(question.function_name, most(100))}, attempt {question.attempt}"
    if question.failure is None:
        yield f"Valid, and waits for approval — {which}."
        yield f"The output:\n{quoted(excerpt(noted(as_text(question.output, 2)), most(1_500)))}"
    else:
        message = question.failure["message"]
        if question.issues:  # The issues are listed below, so they are removed here.
            message = message.removesuffix(f": {format_issues(question.issues)}")
        kind = cut(question.failure["type"], most(100))
        yield f"{kind}: {one_line(message, most(300))} — {which}."
    if question.issues:
        issues = cut(format_issues(question.issues), most(600))
        yield f"What is wrong with the output:\n{quoted(issues)}"
    if question.raw_output is not None and question.failure is not None:
        yield f"The model wrote:\n{quoted(excerpt(noted(question.raw_output), most(400)))}"
    for heading, text in question.quoted:
        yield f"{heading}:\n{quoted(excerpt(noted(text), most(200)))}"
    yield from _proposed(question, room, most)
    if question.subject:
        yield one_line(question.subject, most(300))
    if question.labels:
        labels = ", ".join(f"{name}: {text}" for name, text in question.labels.items())
        yield one_line(labels, most(300))
    if question.expires_at:
        yield f"Answer before {question.expires_at}."


def _proposed(question: Question, room: int, most: Callable[[int], int]) -> Iterator[str]:
    """Yield the paragraphs with the reason why a person is asked, and the suggestions."""
    if question.note:
        yield one_line(question.note, most(300))
    if question.diff:
        what = (
            "Changed for this attempt" if question.suggested_params is None else "Suggested changes"
        )
        yield f"{what}:\n{quoted(_changes(question.diff, room))}"
    if question.alternatives:
        yield f"Alternatives:\n{quoted(cut(_alternatives(question), most(900)))}"


def _changes(diff: list[dict[str, Any]], room: int) -> str:
    """Write the first five changes, one on each line, with values shortened to fit `room`."""
    first = diff[:5]
    most = max(20, room // (2 * len(first)) - 80)
    lines = [
        f"{cut(str(change.get('path')), 60)}: {_value(change.get('before'), most)} → "
        f"{_value(change.get('after'), most)}"
        for change in first
    ]
    return "\n".join([*lines, f"… {len(diff) - 5} more"] if len(diff) > 5 else lines)


def _alternatives(question: Question) -> str:
    lines = (
        f"{number}. "
        + "; ".join(
            f"{change['path']}: {_value(change['after'], 80)}"
            for change in readable_diff(question.params, params)[:5]
        )
        for number, params in enumerate(question.alternatives, start=1)
    )
    return "\n".join(lines)


def _value(value: Any, most: int) -> str:
    text = whole_sentences(value, most) if isinstance(value, str) else value
    return literal(text, most + 40)


def _how_to_answer(question: Question) -> str:
    """Write how to take each decision, by button and as JSON, with warnings about clients."""
    can = offered(question)
    lines = [
        "How to answer, by button or as JSON:",
        *(line for kind in can for line in _ways(kind, question)),
        "",  # A blank line ends a list in Markdown.
    ]
    if "accept" in can:
        lines.append(
            "In Agent Inbox, the button *Accept* calls again. To take the output, write `overrule`."
        )
    if "edit" in can:
        lines.append(
            "In a form, write `null` to clear a field. Fields left out of an edit stay as shown."
        )
        if question.locked:
            names = one_line(", ".join(question.locked), 200)
            lines.append(f"Locked, so leave unchanged: {names}.")
    if "reject" in can and "approve" in can:
        lines.append("In a chat or inbox a rejection needs a reason: an empty box sends *approve*.")
    if not {"comment", "reject"}.isdisjoint(can):
        does = "are told to the model" if "comment" in can else "reject"
        words = ", ".join(f"`{kind}: …`" for kind in can if ROWS[kind].message == "why")
        lines.append(f"In Agent Inbox's response box words {does}; {words} and JSON decide.")
    return "\n".join(lines)


def _ways(kind: str, question: Question) -> Iterator[str]:
    form = form_of(kind, _some_params(question), _fields_of_output(question))
    yield f"- {kind.capitalize()}: {ROWS[kind].does(question)}. `{form}`"
    for name, part in ROWS[kind].parts.items():
        if part.schema(question) is not None:
            yield f'  {part.how} `{{"type": "{kind}", "{name}": {part.example}}}`'


def _some_params(question: Question) -> str:
    """Return an example of edited params as JSON: one short param with its current value."""
    free = (
        json.dumps({name: value}, ensure_ascii=False)
        for name, value in question.shown.items()
        if name not in question.locked
    )
    return next((text for text in free if len(text) <= 120 and "`" not in text), "{}")


def _fields_of_output(question: Question) -> str:
    schema = question.schema_of_output or {}
    branches = object_branches(schema, schema)
    names: dict[str, Any] = (len(branches) == 1 and branches[0].get("properties")) or {}
    fields = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: …" for name in names)
    return f"{{{fields}}}" if 0 < len(fields) <= 300 and "`" not in fields else "…"
