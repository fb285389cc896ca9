"""Read what an answer decides, whichever client wrote it.

Another decision word goes into `_WORDS`, and into the tables below it where the question decides
what it means. Another client goes into `_READERS`: the key under which it puts what it has to say,
and the function that reads that. What it wraps its answers into is taken off by `_unwrapped`, and
`channel_of` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic_core import to_json

from graph_retry._issues import cut, literal
from graph_retry._json import is_array, is_object
from graph_retry._review.decision import DECISION_TYPES, DecisionType
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import UnusableAnswerError
from graph_retry._wording import did_you_mean

_WORDS: dict[str | None, DecisionType] = {
    **dict.fromkeys(("approve", "retry", "yes"), "approve"),
    "edit": "edit",
    **dict.fromkeys(("reject", "cancel", "ignore", "no"), "reject"),
    "respond": "respond",
    # Agent Inbox's response is the text box under the question.
    **dict.fromkeys(("comment", "response"), "comment"),
    "accept": "accept",
}
_OF_VALID_OUTPUT: dict[str, DecisionType] = {"retry": "edit", "accept": "approve"}
_WHERE_NOT_OFFERED: dict[str, DecisionType] = {"response": "reject"}
_BINDING = ("attempt", "review_id", "decision_id", "by", "channel")
_COMMON = ("type", "action", *_BINDING, "message", "reason")
_CANCELLED = "__agui_cancelled__"  # AG-UI: somebody closed the question
# Clients add these for themselves; they decide nothing and are passed over.
_EXTRA = ("id", "interrupt_id", "thread_id", "metadata", "timestamp", "acceptAllowed", "editsMade")
_MAX_WRAPPERS = 8
_MAX_MESSAGE = 10_000
_HOW = (
    'Answer {"type": "approve"}, {"type": "edit", "params": {…}}, {"type": "reject", "message": '
    '"…"}, {"type": "respond", "output": …} or {"type": "comment", "message": "…"}, or one word '
    "such as approve or reject."
)


class Answer(NamedTuple):
    """What an answer says, before it is held against the question.

    `binding` tells which question it is for and who gives it: `attempt`, `review_id`,
    `decision_id`, `by`, `channel`. `data` are params (of an edit, or repeated by an approval) or
    the output. `titles` are those of questions that the client repeats. `from_form` tells that text
    boxes were in between.
    """

    type: DecisionType
    binding: dict[str, Any]
    message: str | None = None
    data: Any = None
    titles: tuple[Any, ...] = ()
    from_form: bool = False


class _Content(NamedTuple):
    """What an answer says under its client's own key."""

    data: Any = None
    title: Any = None
    message: str | None = None
    from_form: bool = False


def _agent_chat_ui(form: Any) -> _Content:
    """Read LangChain's `{"name": title, "args": edited fields}`."""
    fields = form.get("args", form.get("arguments")) if is_object(form) else None
    title = form.get("name", form.get("action")) if is_object(form) else None
    return _Content(fields if is_object(fields) else None, title, from_form=True)


def _agent_inbox(form: Any) -> _Content:
    """Read the same with the title as `action`, or the text of the response box."""
    return _Content(message=form) if isinstance(form, str) else _agent_chat_ui(form)


_FIELDS: dict[str, Callable[[Any], _Content]] = {
    **dict.fromkeys(("params", "revised_params", "revisedParams"), _Content),
    "edited_action": _agent_chat_ui,
    "args": _agent_inbox,
}
_READERS: dict[DecisionType, dict[str, Callable[[Any], _Content]]] = {
    "approve": _FIELDS,
    "edit": _FIELDS,
    "reject": {"args": _agent_inbox},
    "respond": {"output": _Content},
    "comment": {"args": _agent_inbox},
    "accept": {},
}


def interpret(
    answer: Any, *, of_valid: bool = False, offered: Sequence[DecisionType] = DECISION_TYPES
) -> Answer:
    """Say what an answer decides about an output that failed, or about one `of_valid` form.

    Raises:
        UnusableAnswerError: If it decides nothing, or a key does not belong to its decision.

    Example:
        >>> interpret('{"resume": {"action": "retry", "revisedParams": {"n": 0}}}')[:4]
        ('edit', {}, None, {'n': 0})
    """
    entry = _unwrapped(answer)
    given = {key: value for key, value in entry.items() if value is not None}
    binding = {key: given[key] for key in _BINDING if key in given}
    if given.get(_CANCELLED) is True:
        return Answer("reject", binding)
    word = _known_word(given)
    kind = _meant(word, entry, of_valid=of_valid, offered=offered)
    content = _content(given, kind)
    if kind == "respond":
        return _response(entry, binding)
    message = _message(given.get("message", given.get("reason", content.message)))
    if kind == "comment" and message is None:
        raise UnusableAnswerError('To comment takes words: {"type": "comment", "message": "…"}.')
    titles = _titles(given, kind, content)
    if kind in ("reject", "comment", "accept"):
        return Answer(kind, binding, message, None, titles)
    kind, params = _approved_or_edited(word, kind, content, of_valid=of_valid)
    return Answer(kind, binding, message, params, titles, content.from_form)


def _known_word(given: dict[str, Any]) -> str:
    """Return the word that decides, which must be one of the known."""
    word = _word(given)
    if word is None:
        raise UnusableAnswerError(f"The answer does not say what to do: no `type`. {_HOW}")
    if word not in _WORDS:
        raise UnusableAnswerError(f"The answer's type {literal(word, 80)} is no decision. {_HOW}")
    return word


def _meant(
    word: str, entry: dict[str, Any], *, of_valid: bool, offered: Sequence[DecisionType]
) -> DecisionType:
    """Return what a word decides about the question at hand."""
    if word == "response" and entry.get("output") is not None:
        return "respond"
    if word == "accept" and "args" in entry:
        return "approve"  # Agent Inbox's button of that name
    kind = _OF_VALID_OUTPUT.get(word) if of_valid else None
    kind = kind or _WORDS[word]
    return kind if kind in offered else _WHERE_NOT_OFFERED.get(word, kind)


def _titles(given: dict[str, Any], kind: DecisionType, content: _Content) -> tuple[Any, ...]:
    """List the titles of questions that the client repeats, under its own key or as `action`."""
    action = given.get("action") if "type" in given else None
    if _spelled(action) == "retry" or _WORDS.get(_spelled(action)) == kind:
        action = None  # another word for the same decision
    return tuple(title for title in (content.title, action) if title is not None)


def _approved_or_edited(
    word: str, kind: DecisionType, content: _Content, *, of_valid: bool
) -> tuple[DecisionType, dict[str, Any] | None]:
    """Tell an approval from an edit, where the params decide that; return it with its params."""
    # With `accept`, Agent Inbox repeats its form unedited.
    params = None if word == "accept" and content.from_form else content.data
    if word == "retry":
        return ("edit", params or {}) if params or of_valid else ("approve", None)
    if kind == "edit" and params is None:
        raise UnusableAnswerError(
            'An edit needs the changed fields, which must be an object: {"type": "edit", "params": '
            "{…}}, or in a form's answer the edited fields as `args`."
        )
    return kind, params


def _content(given: dict[str, Any], kind: DecisionType) -> _Content:
    """Read what stands under the client's own key, and refuse a key that no such decision has."""
    readers = _READERS[kind]
    known = (*readers, *_COMMON)
    for key in sorted(given.keys() - {*known, *_EXTRA, _CANCELLED}):
        what = f"A decision to {kind} has no key {literal(key, 80)}.{did_you_mean(key, known)}"
        raise UnusableAnswerError(f"{what} Known are {', '.join(f'`{name}`' for name in known)}.")
    keys = [key for key in readers if key in given]
    if len(keys) > 1:
        names = " and ".join(f"`{key}`" for key in keys)
        raise UnusableAnswerError(f"The answer gives params more than once ({names}): give one.")
    return readers[keys[0]](given[keys[0]]) if keys else _Content()


def _response(entry: dict[str, Any], binding: dict[str, Any]) -> Answer:
    if "output" in entry:
        return Answer("respond", binding, _message(entry.get("message")), entry["output"])
    if entry.get("message") is not None:  # LangChain's own respond decision has its text there
        return Answer("respond", binding, None, entry["message"])
    raise UnusableAnswerError('To respond takes an output: {"type": "respond", "output": …}.')


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
    if isinstance(answer, str):
        return "text"
    if is_array(answer):
        return "agent-inbox"
    if is_object(answer) and "decisions" in answer:
        return "agent-chat-ui"
    return "ag-ui" if is_object(answer) and _CANCELLED in answer else "api"


def _unwrapped(answer: Any) -> dict[str, Any]:
    """Return the one entry that decides, with what its wrappers say beside it."""
    outer: dict[str, Any] = {}
    value = _parsed(_json_text(answer))
    for _ in range(_MAX_WRAPPERS):
        if not is_object(value):
            value = _entry_in(value)
            continue
        entry, word = value, _word(value)
        wrapper = next((key for key in ("resume", "decisions") if key in entry), None)
        if word == "response" and (pasted := _pasted(entry.get("args"))):
            value = pasted
        elif wrapper and word is None:
            outer |= {key: beside for key, beside in entry.items() if key != wrapper}
            value = entry[wrapper]
        else:
            return {**outer, **entry}
    raise UnusableAnswerError(f"The answer is wrapped more than {_MAX_WRAPPERS} times. {_HOW}")


def _json_text(answer: Any) -> str:
    try:
        return to_json(answer, by_alias=False, inf_nan_mode="constants").decode()
    except ValueError as error:
        why = cut(str(error).removeprefix("Error serializing to JSON: "), 200)
        what = f"The answer cannot be written as JSON ({why})"
        raise UnusableAnswerError(f"{what}. {_HOW}") from None


def _entry_in(value: Any) -> Any:
    """Take an entry out of a text or a list of one; make one of a decision word or a bool."""
    if isinstance(value, str):
        lone = value.strip().casefold()
        return {"type": lone} if lone in _WORDS else _parsed(value)
    if isinstance(value, bool):
        return {"type": "approve" if value else "reject"}
    if not is_array(value):
        raise UnusableAnswerError(f"The answer {literal(value, 80)} decides nothing. {_HOW}")
    if len(value) == 1:
        return value[0]
    count = f"{len(value)} decisions" if value else "no decision"
    raise UnusableAnswerError(f"The answer holds {count}, but this is one question.")


def _parsed(text: str) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        what = f"The answer {literal(text, 80)} is neither a known word nor JSON ({error})"
        raise UnusableAnswerError(f"{what}. {_HOW}") from None


def _pasted(text: Any) -> dict[str, Any] | None:
    """Return a decision typed where Agent Inbox has no button for it: JSON, or its one word."""
    lone = _spelled(text) if isinstance(text, str) else None
    if lone in _WORDS and lone != "response":
        return {"type": lone}
    with suppress(NotJsonError):
        pasted = read_json(text) if isinstance(text, str) else None
        return pasted if is_object(pasted) and _word(pasted) in _WORDS else None
    return None


def _word(entry: dict[str, Any]) -> str | None:
    return _spelled(entry.get("action") if entry.get("type") is None else entry["type"])


def _spelled(word: Any) -> str | None:
    return None if word is None else str(word).strip().casefold()
