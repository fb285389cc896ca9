"""Read what an unwrapped answer decides, whichever client's shape it has."""

from dataclasses import dataclass
from typing import Any, Final

from graph_retry.params.jsonlike import is_object
from graph_retry.review.decision import DecisionType
from graph_retry.review.question import UnusableAnswerError
from graph_retry.review.unwrap import BINDING_KEYS, FORMS, KIND_WORDS, refuse_unknown, word_of
from graph_retry.validate.issues import literal

MISSING: Final = object()
"""Stands for data an answer does not carry, where null would be a value."""

_FORM_KEYS = ("edited_action", "args")
_PARAMS_KEYS = ("params", "revised_params", "revisedParams")
_ARGS_KEYS = ("args", "arguments")
_COMMON_KEYS = ("type", "action", *BINDING_KEYS, "message", "reason")
_KNOWN_KEYS: dict[DecisionType, tuple[str, ...]] = {
    "approve": (*_PARAMS_KEYS, *_FORM_KEYS, *_COMMON_KEYS),
    "edit": (*_PARAMS_KEYS, *_FORM_KEYS, *_COMMON_KEYS),
    "reject": ("args", *_COMMON_KEYS),
    "respond": ("output", *_COMMON_KEYS),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an answer says, before it is held against the question.

    `data` are params (edit, or repeated by an approval) or the output (respond), `MISSING` if
    there are none. `echoes` are the titles the client repeats. `from_form` tells that text boxes
    were between the person and us.
    """

    type: DecisionType
    data: Any = MISSING
    message: str | None = None
    echoes: tuple[str, ...] = ()
    from_form: bool = False


def interpret(entry: dict[str, Any]) -> Answer:
    """Say what an entry decides.

    Raises:
        UnusableAnswerError: If it decides nothing, or a key does not belong to its decision.

    Example:
        >>> interpret({"action": "retry", "revisedParams": {"temperature": 0}})
        Answer(type='edit', data={'temperature': 0}, message=None, echoes=(), from_form=False)
    """
    if entry.get("__agui_cancelled__") is True:
        return Answer(type="reject")
    given = word_of(entry)
    if given is None:
        raise UnusableAnswerError(f"The answer does not say what to do: no `type`. {FORMS}")
    word = given.strip().casefold() if isinstance(given, str) else ""
    if word not in KIND_WORDS:
        raise UnusableAnswerError(f"The answer's type {literal(given, 80)} is no decision. {FORMS}")
    kind = "respond" if word == "response" and "output" in entry else KIND_WORDS[word]
    data = {
        key: value
        for key, value in entry.items()
        if key != "__agui_cancelled__"
        and (value is not None or (kind == "respond" and key == "output"))
    }
    refuse_unknown(set(data), _KNOWN_KEYS[kind], f"A decision to {kind}")
    if kind == "respond":
        return _respond(data)
    echoes = _echoes(data, kind)
    if kind == "reject":
        return Answer(type=kind, message=_message(data), echoes=echoes)
    holder, params = _params(data, is_accept=word == "accept")
    if word == "retry":
        kind, params = ("approve", MISSING) if params in (MISSING, {}) else ("edit", params)
    if kind == "edit" and params is MISSING:
        raise UnusableAnswerError(
            'An edit needs the changed fields: {"type": "edit", "params": {…}}.'
        )
    form = holder in _FORM_KEYS
    return Answer(type=kind, data=params, message=_message(data), echoes=echoes, from_form=form)


def _respond(data: dict[str, Any]) -> Answer:
    if "output" in data:
        return Answer(type="respond", data=data["output"], message=_message(data))
    if "message" in data:  # LangChain's own respond decision carries its text there
        return Answer(type="respond", data=data["message"])
    raise UnusableAnswerError('To respond takes an output: {"type": "respond", "output": …}.')


def _params(data: dict[str, Any], *, is_accept: bool) -> tuple[str | None, Any]:
    """Return the key that holds params, and the params."""
    sources = [key for key in (*_PARAMS_KEYS, *_FORM_KEYS) if key in data]
    if is_accept:  # Agent Inbox repeats its form in `args` here, unedited, at times incomplete
        sources = [key for key in sources if key != "args"]
    if len(sources) > 1:
        names = " and ".join(f"`{key}`" for key in sources)
        raise UnusableAnswerError(f"The answer gives params more than once ({names}): give one.")
    if not sources:
        return None, MISSING
    holder = sources[0]
    return holder, _action_args(data[holder], holder) if holder in _FORM_KEYS else data[holder]


def _action_args(action: Any, holder: str) -> Any:
    if not is_object(action):
        raise UnusableAnswerError(
            f"`{holder}` must be an object with the edited fields, not {literal(action, 80)}."
        )
    found = [action[key] for key in _ARGS_KEYS if is_object(action.get(key))]
    if holder == "args" and (not found or not _is_action(action)):
        return action
    if not found or found[0] != found[-1]:
        how = "`args` and `arguments` that differ" if found else "no `args` with the edited fields"
        raise UnusableAnswerError(f"`{holder}` has {how}: send `name` and `args`.")
    return found[0]


def _is_action(fields: dict[str, Any]) -> bool:
    return fields.keys() <= {"action", "name", *_ARGS_KEYS, "description", "id"}


def _echoes(data: dict[str, Any], kind: DecisionType) -> tuple[str, ...]:
    """Return the titles an answer repeats, which tell the question it was made for."""
    edited, args = data.get("edited_action"), data.get("args")
    found: list[Any] = []
    if is_object(edited):
        found.append(edited.get("name"))
    if is_object(args) and "args" in args and _is_action(args):
        found.append(args.get("action"))
    if "type" in data and "action" in data:
        beside = data["action"]
        word = beside.strip().casefold() if isinstance(beside, str) else None
        if word == "retry" or (word in KIND_WORDS and KIND_WORDS[word] == kind):
            return tuple(name.strip() for name in found if isinstance(name, str))
        if word is None or word in KIND_WORDS:
            raise UnusableAnswerError(
                f"The answer's `type` says {kind}, but its `action` is {literal(beside, 80)}: send "
                "one of them."
            )
        found.append(beside)
    return tuple(name.strip() for name in found if isinstance(name, str))


def _message(data: dict[str, Any]) -> str | None:
    """Return the reason given, or None if it is blank or absent."""
    given = next((data[key] for key in ("message", "reason", "args") if key in data), None)
    if isinstance(given, str):
        return given if given.strip() else None
    if given is None or ("args" in data and given is data["args"]):
        return None
    raise UnusableAnswerError(f"`message` must be text, not {literal(given, 80)}.")
