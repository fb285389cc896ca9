"""Read the decision in an answer from any client.

The meaning of a word is a row of `decisions`. The format of a client is a file of `clients`. This
module has the parts that all clients share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import to_json

from graph_retry._issues import cut, literal
from graph_retry._json import is_array, is_object
from graph_retry._review.clients.ag_ui import AG_UI, CANCELLED
from graph_retry._review.clients.agent_chat_ui import AGENT_CHAT_UI
from graph_retry._review.clients.agent_inbox import AGENT_INBOX
from graph_retry._review.clients.client import Content, Reading, spelled
from graph_retry._review.clients.plain_json import PLAIN_JSON, TEXT
from graph_retry._review.decisions import DECISION_TYPES, ROWS, WORDS
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import NoDecisionError, Said, UnusableAnswerError
from graph_retry._wording import did_you_mean

CLIENTS = (TEXT, AGENT_INBOX, AGENT_CHAT_UI, AG_UI, PLAIN_JSON)
"""All that draw questions and send answers; the last one is whatever the others are not."""

_OF_VALID_OUTPUT: dict[str, str] = {"retry": "edit", "accept": "approve"}
_BINDING = ("attempt", "review_id", "decision_id", "by", "channel")
_COMMON = ("type", "action", *_BINDING, "message", "reason")
# Clients add these for themselves; they decide nothing and are passed over.
_EXTRA = ("id", "interrupt_id", "thread_id", "metadata", "timestamp", "acceptAllowed", "editsMade")
_MAX_WRAPPERS = 8
_MAX_MESSAGE = 10_000


def form_of(kind: str) -> str:
    """Write the JSON of a decision.

    Example:
        >>> form_of("respond")
        '{"type": "respond", "output": …}'
    """
    row = ROWS[kind]
    data = {"params": "{…}", "output": "…"}.get(row.data or "", '"…"')
    fields = [f'"{row.data}": {data}'] if row.data else []
    fields += ['"message": "…"'] if row.message == "needed" or row.outcome == "cancelled" else []
    return "{" + ", ".join([f'"type": "{kind}"', *fields]) + "}"


def how_to_answer(offered: Sequence[str]) -> str:
    """Say what can be answered, for somebody whose answer decided nothing."""
    forms = ", ".join(map(form_of, offered))
    words = " or ".join([kind for kind in offered if not ROWS[kind].data][:2])
    return f"Answer {forms}{words and f', or one word such as {words}'}."


def said_in_words(text: str) -> dict[str, Any] | None:
    """Return the decision that a text is: its word alone, or before a colon.

    Example:
        >>> said_in_words("Reject: not an invoice")
        {'type': 'reject', 'message': 'not an invoice'}
        >>> said_in_words("not an invoice")
    """
    head, _, rest = text.strip().partition(":")
    kind, rest = WORDS.get(spelled(head)), rest.strip()
    if kind is None:
        return None
    said: dict[str, Any] = {ROWS[kind].data or "message": rest} if rest else {}
    if "choice" in ROWS[kind].parts and rest.isdecimal():
        said = {"choice": int(rest)}
    return {"type": spelled(head), **said}


def interpret(
    answer: Any, *, of_valid: bool = False, offered: Sequence[str] = DECISION_TYPES
) -> Said:
    """Read the decision about a failed output, or about a valid one (`of_valid`).

    Raises:
        NoDecisionError: If it decides nothing.
        UnusableAnswerError: If a key does not belong to its decision.

    Example:
        >>> interpret('{"resume": {"action": "retry", "revisedParams": {"n": 0}}}')[:4]
        ('edit', {}, None, {'n': 0})
    """
    entry = _unwrapped(answer, offered)
    given = {key: value for key, value in entry.items() if value is not None}
    binding = {key: given[key] for key in _BINDING if key in given}
    word = _known_word(given)
    kind = (_OF_VALID_OUTPUT.get(word) if of_valid else None) or WORDS[word]
    row, content = ROWS[kind], _content(given, kind)
    message = _message(given.get("message", given.get("reason", content.message)))
    titles = _titles(given, kind, content)
    parts = {key: given[key] for key in row.parts if key in given}
    if kind in ("approve", "edit"):
        kind, data = _approved_or_edited(word, kind, content, of_valid=of_valid)
        return Said(kind, binding, message, data, titles, content.from_form, parts)
    if row.data in entry and parts:
        raise UnusableAnswerError(f"Give the whole `{row.data}`, or changes of it, and not both.")
    if row.data and row.data not in entry and not parts:
        raise UnusableAnswerError(f"To {kind} takes `{row.data}`: {form_of(kind)}.")
    if row.message == "needed" and message is None:
        raise UnusableAnswerError(f"To {kind} takes words: {form_of(kind)}.")
    return Said(kind, binding, message, row.data and entry.get(row.data), titles, parts=parts)


def _known_word(given: dict[str, Any]) -> str:
    """Return the word that decides, which must be one of the known."""
    word = _word(given)
    if word is None:
        raise NoDecisionError("The answer does not say what to do: no `type`.")
    if word not in WORDS:
        raise NoDecisionError(f"The answer's type {literal(word, 80)} is no decision.")
    return word


def _titles(given: dict[str, Any], kind: str, content: Content) -> tuple[Any, ...]:
    """List the titles of questions that the client repeats, under its own key or as `action`."""
    action = given.get("action") if "type" in given else None
    word = None if action is None else spelled(action)
    if word == "retry" or WORDS.get(word or "") == kind:
        action = None  # another word for the same decision
    return tuple(title for title in (content.title, action) if title is not None)


def _approved_or_edited(
    word: str, kind: str, content: Content, *, of_valid: bool
) -> tuple[str, dict[str, Any] | None]:
    """Distinguish an approval from an edit by the params; return it with its params."""
    params = content.data
    if word == "retry":
        return ("edit", params or None) if params or of_valid else ("approve", None)
    if kind == "edit" and params is None:
        raise UnusableAnswerError(
            f"An edit needs the changed fields, which must be an object: {form_of('edit')}, or in "
            "a form's answer the edited fields as `args`."
        )
    return kind, params


def _content(given: dict[str, Any], kind: str) -> Content:
    """Read the content under the client's own key; refuse a key that the decision lacks."""
    readers: dict[str, Callable[[Any], Content]] = {
        key: reader
        for client in CLIENTS
        for key, (kinds, reader) in client.keys.items()
        if kind in kinds
    }
    row, data = ROWS[kind], ROWS[kind].data
    for key in sorted(given.keys() - {data, *row.parts, *readers, *_COMMON, *_EXTRA, CANCELLED}):
        what = f"A decision to {kind} has no key {literal(key, 80)}."
        if meant := next(
            (other for other in ROWS if key in (ROWS[other].data, *ROWS[other].parts)), None
        ):
            raise UnusableAnswerError(f"{what} To {meant}, send {form_of(meant)}.")
        known = tuple(filter(None, (data, *row.parts, "message", *_BINDING)))
        names = ", ".join(f"`{name}`" for name in known)
        raise UnusableAnswerError(f"{what}{did_you_mean(key, known)} Known are {names}.")
    keys = [key for key in readers if key in given]
    if len(keys) > 1:
        names = " and ".join(f"`{key}`" for key in keys)
        raise UnusableAnswerError(f"The answer gives params more than once ({names}): give one.")
    return readers[keys[0]](given[keys[0]]) if keys else Content()


def _message(text: Any) -> str | None:
    if isinstance(text, str) and len(text) > _MAX_MESSAGE:
        what = f"`message` is {len(text):,} characters long"
        raise UnusableAnswerError(f"{what}: say it in {_MAX_MESSAGE:,}.")
    if text is None or isinstance(text, str):
        return text if text and text.strip() else None
    raise UnusableAnswerError(f"`message` must be text, not {literal(text, 80)}.")


def channel_of(answer: Any) -> str:
    """Name the client whose shape an answer has; `api` for the canonical form.

    Example:
        >>> channel_of([{"type": "accept", "args": None}]), channel_of("approve")
        ('agent-inbox', 'text')
    """
    while is_object(answer) and "resume" in answer:
        answer = answer["resume"]
    return next(client.channel for client in CLIENTS if client.is_sender(answer))


def _unwrapped(answer: Any, offered: Sequence[str]) -> dict[str, Any]:
    """Return the one entry that decides in the words of the table, with what is said beside it."""
    outer: dict[str, Any] = {}
    value = _parsed(_json_text(answer))
    for _ in range(_MAX_WRAPPERS):
        if not is_object(value):
            value = _entry_in(value)
            continue
        entry = value
        wrapper = next((key for key in ("resume", "decisions") if key in entry), None)
        if wrapper and _word(entry) is None:
            outer |= {key: beside for key, beside in entry.items() if key != wrapper}
            value = entry[wrapper]
            continue
        for client in CLIENTS:
            value = client.translate(value, Reading(offered, said_in_words))
        if value == entry:
            return {**outer, **entry}
    raise NoDecisionError(f"The answer is wrapped more than {_MAX_WRAPPERS} times.")


def _json_text(answer: Any) -> str:
    try:
        return to_json(answer, by_alias=False, inf_nan_mode="constants").decode()
    except ValueError as error:
        why = cut(str(error).removeprefix("Error serializing to JSON: "), 200)
        what = f"The answer cannot be written as JSON ({why})"
        raise NoDecisionError(f"{what}.") from None


def _entry_in(value: Any) -> Any:
    """Take an entry out of a text or a list of one; make one of a decision's word or a bool."""
    if isinstance(value, str):
        return said_in_words(value) or _parsed(value)
    if isinstance(value, bool):
        return {"type": "approve" if value else "reject"}
    if not is_array(value):
        raise NoDecisionError(f"The answer {literal(value, 80)} decides nothing.")
    if len(value) == 1:
        return value[0]
    count = f"{len(value)} decisions" if value else "no decision"
    raise UnusableAnswerError(f"The answer holds {count}, but this is one question.")


def _parsed(text: str) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        what = f"The answer {literal(text, 80)} is neither a known word nor JSON ({error})"
        raise NoDecisionError(f"{what}.") from None


def _word(entry: dict[str, Any]) -> str | None:
    word = entry.get("action") if entry.get("type") is None else entry["type"]
    return None if word is None else spelled(word)
