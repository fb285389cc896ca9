"""Take an answer out of its wrappers: JSON text, lists of one, `{"resume": …}` and the like."""

from difflib import get_close_matches
from typing import Any, Final

from graph_retry.forms.strict_json import NotJsonError, plain_json, read_json
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.review.decision import DecisionType
from graph_retry.review.question import UnusableAnswerError
from graph_retry.validate.issues import literal

BINDING_KEYS: Final = ("attempt", "review_id", "decision_id", "by")
CLIENT_KEYS: Final = frozenset(
    {"id", "interrupt_id", "thread_id", "metadata", "timestamp", "acceptAllowed", "editsMade"}
)
"""Keys that clients add for themselves; they decide nothing and are passed over."""

LONE_WORDS: Final[dict[str, DecisionType]] = {
    "approve": "approve",
    "accept": "approve",
    "retry": "approve",
    "yes": "approve",
    "reject": "reject",
    "cancel": "reject",
    "ignore": "reject",
    "no": "reject",
}
KIND_WORDS: Final[dict[str, DecisionType]] = {
    **LONE_WORDS,
    "edit": "edit",
    "respond": "respond",
    "response": "reject",  # Agent Inbox: the text box under the question, a reason to stop
}
FORMS: Final = (
    'Answer {"type": "approve"}, {"type": "edit", "params": {…}}, {"type": "reject", "message": '
    '"…"} or {"type": "respond", "output": …}, or one word such as approve or reject.'
)
_MAX_WRAPPERS = 8


def unwrap(answer: Any) -> dict[str, Any]:
    """Return the one entry that decides, with the binding keys of its wrappers merged in.

    Raises:
        UnusableAnswerError: If there is no such entry, or more than one.

    Example:
        >>> unwrap('{"resume": {"decisions": [{"type": "approve"}], "attempt": 2}}')
        {'attempt': 2, 'type': 'approve'}
    """
    try:
        value = plain_json(answer)
    except NotJsonError as error:
        raise UnusableAnswerError(f"The answer is not usable: {error}. {FORMS}") from None
    outer: dict[str, Any] = {}
    for _ in range(_MAX_WRAPPERS):
        if isinstance(value, str):
            value = _read_text(value)
        elif isinstance(value, bool):
            value = {"type": "approve" if value else "reject"}
        elif is_array(value):
            value = _only(value)
        elif is_object(value):
            entry = value
            inner, rest = _opened(entry)
            outer = _merged(outer, rest)
            if inner is None:
                return outer
            value = inner
        else:
            raise UnusableAnswerError(f"The answer {literal(value, 80)} decides nothing. {FORMS}")
    raise UnusableAnswerError(f"The answer is wrapped more than {_MAX_WRAPPERS} times. {FORMS}")


def word_of(entry: dict[str, Any]) -> Any:
    """Return the word that says what an entry decides, as it stands there."""
    given = entry.get("type")
    return entry.get("action") if given is None else given


def refuse_unknown(keys: set[str], known: tuple[str, ...], where: str) -> None:
    """Refuse a key that is neither known nor a client's own, so that no typo is passed over.

    Raises:
        UnusableAnswerError: If there is one; it lists the known keys.
    """
    for key in sorted(keys - CLIENT_KEYS - set(known)):
        names = ", ".join(f"`{name}`" for name in known)
        hint = did_you_mean(key, known)
        raise UnusableAnswerError(
            f"{where} has no key {literal(key, 80)}.{hint} Known are {names}."
        )


def did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Suggest the known name closest to a misspelt one, as a sentence, or nothing.

    Example:
        >>> did_you_mean("temprature", ("temperature", "model"))
        ' Did you mean `temperature`?'
    """
    close = get_close_matches(name[:100], known, 1)
    return f" Did you mean `{close[0]}`?" if close else ""


def _opened(entry: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what an entry wraps, or None, and what else it holds."""
    word = word_of(entry)
    if isinstance(word, str) and word.strip().casefold() == "response":
        pasted = _pasted_decision(entry.get("args"))
        if pasted is not None:
            return pasted, {key: entry[key] for key in BINDING_KEYS if key in entry}
    wrapper = next((key for key in ("resume", "decisions") if key in entry), None)
    if wrapper is None or word is not None:
        return None, entry
    rest = {key: value for key, value in entry.items() if key != wrapper}
    refuse_unknown(set(rest), BINDING_KEYS, f"An answer wrapped in `{wrapper}`")
    if entry[wrapper] is None:
        raise UnusableAnswerError(f"`{wrapper}` is null, which decides nothing. {FORMS}")
    return entry[wrapper], rest


def _read_text(text: str) -> Any:
    word = text.strip().casefold()
    if word in LONE_WORDS:
        return {"type": word}
    try:
        return read_json(text)
    except NotJsonError as error:
        raise UnusableAnswerError(
            f"The answer {literal(text, 80)} is neither a known word nor JSON ({error}). {FORMS}"
        ) from None


def _pasted_decision(text: Any) -> dict[str, Any] | None:
    """Return a decision somebody pasted as JSON into Agent Inbox's response box.

    That box is the only place there where an output can be supplied.
    """
    try:
        pasted = read_json(text) if isinstance(text, str) else None
    except NotJsonError:
        return None
    if not is_object(pasted):
        return None
    found = pasted
    word = word_of(found)
    return found if isinstance(word, str) and word.strip().casefold() in KIND_WORDS else None


def _only(entries: list[Any]) -> Any:
    if len(entries) == 1:
        return entries[0]
    count = f"{len(entries)} decisions" if entries else "no decision"
    raise UnusableAnswerError(f"The answer holds {count}, but this is one question: send one.")


def _merged(outer: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    for key in BINDING_KEYS:
        if key in entry and key in outer and entry[key] != outer[key]:
            raise UnusableAnswerError(f"The answer gives `{key}` twice, with different values.")
    return {**outer, **entry}
