"""Read an answer in the form of any client, and check it against the open question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langgraph.errors import GraphBubbleUp
from pydantic_core import to_json

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError
from graph_retry._core.ground.issues import cut, literal, wrap_error
from graph_retry._core.ground.json import NotJsonError, is_array, is_object, read_json
from graph_retry._core.ground.wording import did_you_mean
from graph_retry._core.review.answers import BINDING, Decision
from graph_retry._core.review.clients.table import (
    NO_FIELDS,
    Entry,
    said_in_words,
    translated,
    without,
    word_of,
)
from graph_retry._core.review.decisions import (
    DECISION_TYPES,
    ROWS,
    WORDS,
    form_of,
    spelled,
    why_not_offered,
)
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import Question, Reading, Refused
from graph_retry.lossless._ground import error_text

_OF_VALID_OUTPUT: dict[str, str] = {"retry": "edit", "accept": "approve"}
_COMMON = ("type", "action", *BINDING, "message", "reason")
# Clients add these keys for their own use. The keys are ignored, because they decide nothing.
_EXTRA = ("id", "interrupt_id", "thread_id", "metadata", "timestamp", "acceptAllowed", "editsMade")
_MAX_WRAPPERS = 8
_MAX_MESSAGE = 10_000


async def judge(answer: Any, question: Question) -> Accepted | Refused:
    """Check an answer against the open question. Return `Refused` if the answer cannot be applied.

    A wrong answer never raises an exception, because each resume would raise it again.

    Example:
        >>> from graph_retry._core.ground.functions.awaiting import run_sync
        >>> from graph_retry._core.params.codec import ParamsCodec
        >>> question = Question(
        ...     function_name="extract", attempt=2, review_id="r2", params={"temperature": 0.7},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     codec=ParamsCodec(dict),
        ... )
        >>> run_sync(judge({"type": "edit", "params": {"temperature": "0.2"}}, question)).params
        {'temperature': 0.2}
        >>> run_sync(judge({"type": "edit", "params": {"temperature": "warm"}}, question)).problem
        '`temperature` expects a number, not "warm".'
    """
    try:
        closed = why_not_offered(question)
        offered = [kind for kind, why in closed.items() if why is None]
        reading = interpret(answer, of_valid=question.failure is None, offered=offered)
        _check_binding(reading, question)
        kind = reading.decision["type"]
        if (why := closed[kind]) is not None:
            allowed = ", ".join(reading.offered)
            raise Refused(f"{kind.capitalize()} is not allowed here: {why}. Allowed are {allowed}.")
        verdict = await ROWS[kind].decide(reading, question)
    except Refused as refused:
        return refused
    except (GraphBubbleUp, AsyncUnderSyncError):
        raise  # `GraphBubbleUp` is LangGraph's control flow, such as an interrupt in a validator.
    except Exception as error:  # noqa: BLE001 - it would come again at each resume
        problem = f"The answer could not be checked: {wrap_error(error)[0]['message']}"
        return Refused(cut(problem, 500))
    said = {key: part for key, part in reading.decision.items() if key in ("message", *BINDING)}
    return verdict._replace(decision=cast("Decision", {**verdict.decision, **said}))


def _check_binding(reading: Reading, question: Question) -> None:
    """Refuse an answer that is for another question, or that was already applied."""
    decision: dict[str, Any] = {**reading.decision}
    for key in ("decision_id", "by", "channel"):
        text = decision.get(key, "")
        if not isinstance(text, str) or len(text) > 200:
            what = f"`{key}` must be text of up to 200 characters"
            raise Refused(f"{what}, not {literal(text, 80)}.")
    stale = [
        f"for {literal(title, 80)}"
        for title in reading.titles
        if title is not None and not question.has_title(str(title))
    ]
    if question.title.endswith(f"[{decision.get('review_id')}]"):
        decision["review_id"] = question.review_id
    for key, current in (("attempt", question.attempt), ("review_id", question.review_id)):
        # For attempt 2, a form sends the text `"2"`, and JavaScript may send `2.0`.
        if key in decision and str(decision[key]).strip().removesuffix(".0") != str(current):
            stale.append(f"for {key.removesuffix('_id')} {literal(decision[key], 80)}")
        elif key in decision:
            decision[key] = current
    if (decision_id := decision.get("decision_id")) in question.seen_decisions:
        stale.append(f"the decision {literal(decision_id, 80)}, which was already applied")
    if stale:
        raise Refused(
            # The question is asked again under a new id, so this text cannot name it.
            f"The answer is stale: it is {stale[0]}, but another question is open now. Read the "
            "open question, and answer again."
        )
    reading.decision = cast("Decision", decision)


def interpret(
    answer: Any, *, of_valid: bool = False, offered: Sequence[str] = DECISION_TYPES
) -> Reading:
    """Read the decision in an answer, in any form that a client may send.

    Args:
        answer: The value with which the graph was resumed.
        of_valid: Whether the question is about a valid output. `retry` and `accept` then mean
            something else than after a failed attempt.
        offered: The decisions that the question allows. An error lists them.

    Raises:
        Refused: If the answer has no decision, or if a key of the decision is unknown or missing.

    Example:
        >>> interpret('{"resume": {"action": "retry", "revisedParams": {"n": 0}}}').decision
        {'type': 'edit', 'params': {'n': 0}}
    """
    reading = Reading(offered)
    entry = _unwrapped(answer, reading)
    given = {key: value for key, value in entry.items() if value is not None}
    word = word_of(given)
    if word is None:
        raise _no_decision("The answer has no `type`, which names the decision.", offered)
    if word not in WORDS:
        raise _no_decision(f"The answer's type {literal(word, 80)} is not a decision.", offered)
    kind = (_OF_VALID_OUTPUT.get(word) if of_valid else None) or WORDS[word]
    _check_keys(given, kind)
    _note_title(given, kind, reading)
    message = _message(given.get("message", given.get("reason")))
    if word == "retry":
        kind = "edit" if given.get("params") or of_valid else "approve"
    else:
        _check_complete(entry, kind, message)
    said = {key: given[key] for key in (*ROWS[kind].parts, *BINDING) if key in given}
    if (data := _data_key(kind)) in entry and (entry[data] is not None or kind == "respond"):
        said[data] = entry[data]
    said |= {} if message is None else {"message": message}
    reading.decision = cast("Decision", {"type": kind, **said})
    return reading


@checked
def read_answer(given: Any) -> Decision:
    """Read the decision in an answer, in any form that a client may send. Nothing is applied.

    Raises:
        ValueError: If the answer is not a decision. The message tells a person what to send.

    Example:
        >>> read_answer("yes"), read_answer({"action": "cancel", "reason": "too dear"})
        ({'type': 'approve'}, {'type': 'reject', 'message': 'too dear'})
    """
    return interpret(given).decision


def _no_decision(why: str, offered: Sequence[str]) -> Refused:
    """Return the refusal of an answer that is no decision. The text lists the possible answers."""
    forms = ", ".join(map(form_of, offered))
    words = " or ".join([kind for kind in offered if not ROWS[kind].data][:2])
    return Refused(f"{why} Answer {forms}{words and f', or one word such as {words}'}.")


def _data_key(kind: str) -> str:
    """Return the key of a decision's data. An approval may have `params`, as clients send them."""
    return "params" if kind == "approve" else ROWS[kind].data or ""


def _check_keys(given: Entry, kind: str) -> None:
    """Refuse an answer with a key that its decision does not have."""
    row = ROWS[kind]
    for key in sorted(given.keys() - {_data_key(kind), *row.parts, *_COMMON, *_EXTRA}):
        what = f"The decision {kind} has no key {literal(key, 80)}."
        owners = (other for other in ROWS if key in (ROWS[other].data, *ROWS[other].parts))
        if meant := next(owners, None):
            raise Refused(f"{what} To {meant}, send {form_of(meant)}.")
        known = (*row.keys, *BINDING)
        names = ", ".join(f"`{name}`" for name in known)
        raise Refused(f"{what}{did_you_mean(key, known)} Known are {names}.")


def _check_complete(entry: Entry, kind: str, message: str | None) -> None:
    """Refuse an answer that lacks a needed key, or that has both whole data and changes."""
    row = ROWS[kind]
    parts = any(entry.get(key) is not None for key in row.parts)
    if kind == "edit" and entry.get("params") is None:
        raise Refused(NO_FIELDS)
    if row.data in entry and parts:
        raise Refused(f"Give either the whole `{row.data}` or changes of it, not both.")
    has_data = not row.data or row.data in entry or parts
    if not has_data or (row.message == "needed" and message is None):
        raise Refused(f"To {kind}, send {form_of(kind)}.")


def _note_title(given: Entry, kind: str, reading: Reading) -> None:
    """Keep the key `action` as the title of a question, unless it is a word for the decision."""
    action = given.get("action") if "type" in given else None
    word = None if action is None else spelled(action)
    if word not in (None, "retry") and WORDS.get(word) != kind:
        reading.titles.append(action)


def _message(text: Any) -> str | None:
    if isinstance(text, str) and len(text) > _MAX_MESSAGE:
        what = f"`message` is {len(text):,} characters long"
        raise Refused(f"{what}: shorten it to {_MAX_MESSAGE:,}.")
    if text is None or isinstance(text, str):
        return text if text and text.strip() else None
    raise Refused(f"`message` must be text, not {literal(text, 80)}.")


def _unwrapped(answer: Any, reading: Reading) -> Entry:
    """Return the object with the decision, in the words and keys of this library.

    Clients wrap the decision in a list, in a JSON text, or in a key such as `resume`.
    Other keys of such a wrapper are kept.
    """
    outer: Entry = {}
    try:
        value = read_json(_json_text(answer, reading))
    except NotJsonError as error:
        why = f"The answer has a value that JSON cannot represent: {error}."
        raise _no_decision(why, reading.offered) from None
    for _ in range(_MAX_WRAPPERS):
        if not is_object(value):
            value = _entry_in(value, reading)
            continue
        entry = {**outer, **value}
        wrapper = next((key for key in ("resume", "decisions") if key in value), None)
        if wrapper and word_of(value) is None:
            outer, value = without(entry, wrapper), value[wrapper]
            continue
        outer, value = {}, translated(entry, reading)
        if value == entry:
            return entry
    raise _no_decision(f"The answer is wrapped more than {_MAX_WRAPPERS} times.", reading.offered)


def _json_text(answer: Any, reading: Reading) -> str:
    try:
        return to_json(answer, by_alias=False, inf_nan_mode="constants").decode()
    except ValueError as error:
        why = cut(error_text(error).removeprefix("Error serializing to JSON: "), 200)
        what = f"The answer cannot be written as JSON ({why})"
        raise _no_decision(f"{what}.", reading.offered) from None


def _entry_in(value: Any, reading: Reading) -> Any:
    """Return the decision in a text, a list of one item, or a bool (True approves)."""
    if isinstance(value, str):
        return said_in_words(value) or _parsed(value, reading)
    if isinstance(value, bool):
        return {"type": "approve" if value else "reject"}
    if not is_array(value):
        raise _no_decision(f"The answer {literal(value, 80)} is not a decision.", reading.offered)
    if len(value) == 1:
        return value[0]
    count = f"{len(value)} decisions" if value else "no decision"
    raise Refused(f"The answer has {count}, but this is one question.")


def _parsed(text: str, reading: Reading) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        what = f"The answer {literal(text, 80)} is neither a known word nor JSON"
        # An answer that graph state cannot hold comes as JSON text, which the person did not write.
        if text.lstrip()[:1] in ("{", "["):
            what = "The answer is not valid JSON"
        raise _no_decision(f"{what} ({error}).", reading.offered) from None
