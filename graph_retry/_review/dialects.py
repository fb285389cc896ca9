"""Read what an answer decides, whichever client's shape it has."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic_core import to_json

from graph_retry._issues import cut, literal
from graph_retry._json import is_array, is_object
from graph_retry._review.decision import DecisionType
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import UnusableAnswerError

_WORDS: dict[DecisionType, tuple[str, ...]] = {
    "approve": ("approve", "accept", "retry", "yes"),
    "edit": ("edit",),
    # Agent Inbox's response is the text box under the question: a reason to stop.
    "reject": ("reject", "cancel", "ignore", "no", "response"),
    "respond": ("respond",),
}
_KINDS: dict[str | None, DecisionType] = {w: kind for kind, words in _WORDS.items() for w in words}
_PARAMS = ("params", "revised_params", "revisedParams")
_FORMS = ("edited_action", "args")
_DATA: dict[DecisionType, tuple[str, ...]] = {"reject": ("args",), "respond": ("output",)}
_BINDING = ("attempt", "review_id", "decision_id", "by", "channel")
_COMMON = ("type", "action", *_BINDING, "message", "reason")
# Clients add these for themselves; they decide nothing and are passed over.
_EXTRA = ("id", "interrupt_id", "thread_id", "metadata", "timestamp", "acceptAllowed", "editsMade")
_MAX_WRAPPERS = 8
_MAX_MESSAGE = 10_000
_HOW = (
    'Answer {"type": "approve"}, {"type": "edit", "params": {…}}, {"type": "reject", "message": '
    '"…"} or {"type": "respond", "output": …}, or one word such as approve or reject.'
)


class Answer(NamedTuple):
    """What an answer says, before it is held against the question.

    `told` is what it tells of itself: `attempt`, `review_id`, `decision_id`, `by`, `channel`.
    `data` are params (of an edit, or repeated by an approval) or the output. `echoes` are the
    titles the client repeats. `from_form` tells that text boxes were in between.
    """

    type: DecisionType
    told: dict[str, Any]
    message: str | None = None
    data: Any = None
    echoes: tuple[Any, ...] = ()
    from_form: bool = False


def interpret(answer: Any) -> Answer:
    """Say what an answer decides.

    Raises:
        UnusableAnswerError: If it decides nothing, or a key does not belong to its decision.

    Example:
        >>> interpret('{"resume": {"action": "retry", "revisedParams": {"n": 0}}}')[:4]
        ('edit', {}, None, {'n': 0})
    """
    entry = _unwrapped(answer)
    given = {key: each for key, each in entry.items() if each is not None}
    told = {key: given[key] for key in _BINDING if key in given}
    if entry.get("__agui_cancelled__") is True:
        return Answer("reject", told)
    word = _word(given)
    if word is None:
        raise UnusableAnswerError(f"The answer does not say what to do: no `type`. {_HOW}")
    if word not in _KINDS:
        raise UnusableAnswerError(f"The answer's type {literal(word, 80)} is no decision. {_HOW}")
    kind = "respond" if word == "response" and "output" in given else _KINDS[word]
    known = (*_DATA.get(kind, (*_PARAMS, *_FORMS)), *_COMMON)
    for key in sorted(given.keys() - {*known, *_EXTRA, "__agui_cancelled__"}):
        what = f"A decision to {kind} has no key {literal(key, 80)}.{did_you_mean(key, known)}"
        raise UnusableAnswerError(f"{what} Known are {', '.join(f'`{name}`' for name in known)}.")
    if kind == "respond":
        return _response(entry, given, told)
    holder = next((key for key in _FORMS if key in given), "")
    form = given.get(holder)
    echoes = _echoes(given, form, kind)
    if kind == "reject":
        return Answer(kind, told, _message(given, form), None, echoes)
    sources: dict[str, Any] = {key: given[key] for key in _PARAMS if key in given}
    if holder and word != "accept":  # with that word, Agent Inbox repeats its form unedited
        sources[holder] = _edited(form, holder)
    if len(sources) > 1:
        names = " and ".join(f"`{key}`" for key in sources)
        raise UnusableAnswerError(f"The answer gives params more than once ({names}): give one.")
    data = next(iter(sources.values()), None)
    if word == "retry":
        kind, data = ("edit", data) if data else ("approve", None)
    if kind == "edit" and data is None:
        what = "An edit needs the changed fields"
        raise UnusableAnswerError(f'{what}: {{"type": "edit", "params": {{…}}}}.')
    return Answer(kind, told, _message(given), data, echoes, holder in sources)


def _response(entry: dict[str, Any], given: dict[str, Any], told: dict[str, Any]) -> Answer:
    if "output" in entry:
        return Answer("respond", told, _message(given), entry["output"])
    if "message" in given:  # LangChain's own respond decision carries its text there
        return Answer("respond", told, None, given["message"])
    raise UnusableAnswerError('To respond takes an output: {"type": "respond", "output": …}.')


def did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Suggest the known name closest to a misspelt one, as a sentence, or nothing.

    Example:
        >>> did_you_mean("temprature", ("temperature", "model"))
        ' Did you mean `temperature`?'
    """
    close = get_close_matches(name[:100], known, 1)
    return f" Did you mean `{close[0]}`?" if close else ""


def _unwrapped(answer: Any) -> dict[str, Any]:
    """Return the one entry that decides, with what its wrappers say beside it."""
    outer: dict[str, Any] = {}
    try:
        text = to_json(answer, by_alias=False, inf_nan_mode="constants").decode()
    except ValueError as error:
        why = cut(str(error).removeprefix("Error serializing to JSON: "), 200)
        what = f"The answer cannot be written as JSON ({why})"
        raise UnusableAnswerError(f"{what}. {_HOW}") from None
    value = _parsed(text)
    for _ in range(_MAX_WRAPPERS):
        if isinstance(value, str):
            lone = value.strip().casefold()
            value = {"type": lone} if lone in _KINDS else _parsed(value)
        elif isinstance(value, bool):
            value = {"type": "approve" if value else "reject"}
        elif is_array(value) and len(value) == 1:
            value = value[0]
        elif is_array(value):
            count = f"{len(value)} decisions" if value else "no decision"
            raise UnusableAnswerError(f"The answer holds {count}, but this is one question.")
        elif is_object(value):
            entry, word = value, _word(value)
            wrapper = next((key for key in ("resume", "decisions") if key in entry), None)
            if word == "response" and (pasted := _pasted(entry.get("args"))):
                value = pasted
            elif wrapper and word is None:
                outer |= {key: each for key, each in entry.items() if key != wrapper}
                value = entry[wrapper]
            else:
                return {**outer, **entry}
        else:
            raise UnusableAnswerError(f"The answer {literal(value, 80)} decides nothing. {_HOW}")
    raise UnusableAnswerError(f"The answer is wrapped more than {_MAX_WRAPPERS} times. {_HOW}")


def _parsed(text: str) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        what = f"The answer {literal(text, 80)} is neither a known word nor JSON ({error})"
        raise UnusableAnswerError(f"{what}. {_HOW}") from None


def _pasted(text: Any) -> dict[str, Any] | None:
    """Return a decision pasted as JSON where Agent Inbox has no other place for an output."""
    with suppress(NotJsonError):
        found = read_json(text) if isinstance(text, str) else None
        return found if is_object(found) and _word(found) in _KINDS else None
    return None


def _word(entry: dict[str, Any]) -> str | None:
    given = entry.get("action") if entry.get("type") is None else entry["type"]
    return None if given is None else str(given).strip().casefold()


def _edited(form: Any, holder: str) -> dict[str, Any]:
    fields = form.get("args", form.get("arguments")) if is_object(form) else None
    if is_object(fields):
        return fields
    what = f"`{holder}` must be an object that holds the edited fields as `args`"
    raise UnusableAnswerError(f"{what}, not {literal(form, 80)}.")


def _echoes(given: dict[str, Any], form: Any, kind: DecisionType) -> tuple[Any, ...]:
    """Return the titles an answer repeats, which tell the question it was made for."""
    found = [form.get("name", form.get("action"))] if is_object(form) else []
    beside = given.get("action") if "type" in given else None
    if str(beside).strip().casefold() not in (*_WORDS[kind], "retry"):
        found.append(beside)
    return tuple(each for each in found if each is not None)


def _message(given: dict[str, Any], form: Any = None) -> str | None:
    text = given.get("message", given.get("reason", form if isinstance(form, str) else None))
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
    if is_object(answer) and "__agui_cancelled__" in answer:
        return "ag-ui"
    return "api"
