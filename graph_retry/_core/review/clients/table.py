"""The table of clients: how each client shows a review, and the words and keys of its answers.

To add a client, add a row to `CLIENTS`. The functions under `keys` and `words` translate an answer
from the client's own keys and words to those of this library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.review.decisions import ROWS, WORDS, form_of, spelled
from graph_retry._core.review.review_record import Reading, Refused
from graph_retry.lossless._ground import lazy
from graph_retry.records import INTERVENTION

Entry = dict[str, Any]
Read = Callable[[Entry, Reading], Entry]

NO_FIELDS = (
    f"An edit needs an object of the changed fields: {form_of('edit')}. A form's answer has them "
    "as `args`."
)

_JSON = lazy(r"\{|\[\s*\{")


class Form(NamedTuple):
    """The parts of a review from which the keys of each client are made.

    message: The review in one line.
    args: The params that a person may edit.
    description: The review in Markdown.
    offered: The decisions that a person may take.
    schema: The JSON Schema of a valid answer.
    """

    title: str
    message: str
    args: dict[str, Any]
    description: str
    offered: list[str]
    schema: dict[str, Any]


@dataclass(frozen=True)
class Client:
    """A client that shows reviews and sends answers.

    channel: The name of the client in the ledger.
    is_sender: Returns whether an answer has the form that this client sends.
    draw: Returns the keys of the interrupt's value that this client reads.
    keys, words: Functions that read the client's own keys and words in an answer.
    """

    channel: str
    is_sender: Callable[[Any], bool]
    draw: Callable[[Form], dict[str, Any]] = lambda _: {}
    keys: Mapping[str, Read] = field(default_factory=dict[str, Any])
    words: Mapping[str, Read] = field(default_factory=dict[str, Any])


def word_of(entry: Entry) -> str | None:
    """Return the word for the decision, from the key `type`, or else from the key `action`."""
    word = entry.get("action") if entry.get("type") is None else entry["type"]
    return None if word is None else spelled(word)


def said_in_words(text: str) -> Entry | None:
    """Return the decision that a text states in words; None if it states none.

    The text must be a word for a decision, alone or followed by a colon and a message.

    Example:
        >>> said_in_words("Reject: not an invoice")
        {'type': 'reject', 'message': 'not an invoice'}
        >>> said_in_words("not an invoice")
    """
    head, _, rest = text.strip().partition(":")
    kind, rest = WORDS.get(spelled(head)), rest.strip()
    if kind is None:
        return None
    said: Entry = {ROWS[kind].data or "message": rest} if rest else {}
    if "choice" in ROWS[kind].parts and rest.isdecimal():
        said = {"choice": int(rest)}
    return {"type": spelled(head), **said}


def without(entry: Entry, *keys: str) -> Entry:
    """Return a copy of an entry without the given keys."""
    return {key: part for key, part in entry.items() if key not in keys}


def _form_in(sent: Any, reading: Reading) -> dict[str, Any] | None:
    """Read a form: `{"name" or "action": title, "args" or "arguments": edited fields}`."""
    if not is_object(sent):
        return None
    reading.titles.append(sent.get("name", sent.get("action")))
    reading.from_form = True
    fields = sent.get("args", sent.get("arguments"))
    return fields if is_object(fields) else None


def _form(key: str) -> Read:
    return lambda entry, reading: _with_params(key, _form_in(entry[key], reading), entry)


def _params(key: str) -> Read:
    return lambda entry, _: _with_params(key, entry[key], entry)


def _with_params(key: str, params: Any, entry: Entry) -> Entry:
    """Move the params of an approval or an edit from a client's own `key` to the key `params`."""
    kind, sent = WORDS.get(word_of(entry) or ""), entry[key]
    if kind not in ("approve", "edit"):
        return entry
    if kind == "edit" and params is None and sent is not None:
        raise Refused(NO_FIELDS)
    named = {each for each in sent if sent[each] is not None} if is_object(sent) else set[str]()
    has_fields = sent and named not in ({"name"}, {"action"})  # A form may hold only its title.
    if kind == "approve" and params is None and has_fields:
        raise Refused(
            f"`{key}` of the approval is {literal(sent, 80)}, in which no params can be read. "
            f"To approve, send {form_of('approve')}. To change params, send {form_of('edit')}."
        )
    if sent is not None and entry.get("params") is not None:
        problem = f"The answer has params twice, as `{key}` and as `params`: send only one of them."
        raise Refused(problem)
    rest = without(entry, key)
    return rest if params is None else {**rest, "params": params}


def _args(entry: Entry, reading: Reading) -> Entry:
    """Read the key `args` of Agent Inbox, which holds a form or a text."""
    kind, args = WORDS.get(word_of(entry) or ""), entry["args"]
    if isinstance(args, str) and args and kind in ("approve", "reject", "comment"):
        return {**without(entry, "args"), "reason": entry.get("reason") or args}
    if kind in ("reject", "comment"):
        _form_in(args, reading)
        return without(entry, "args")
    return _form("args")(entry, reading)


def _accepted(entry: Entry, reading: Reading) -> Entry:
    """Read an approval from Agent Inbox, whose `args` is the form as it was shown."""
    if "args" not in entry:
        return entry
    _form_in(entry["args"], reading)
    return {**without(entry, "args"), "type": "approve"}


def _boxed(entry: Entry, reading: Reading) -> Entry:
    """Read a text from the response box of Agent Inbox.

    A text that is no decision is a comment, or a reason to reject if comments are not offered.
    """
    if entry.get("output") is not None:
        return {**entry, "type": "respond"}
    others, args = without(entry, "args", "type"), entry.get("args")
    _form_in(args, reading)
    text = args if isinstance(args, str) else ""
    typed = text.strip().strip("`")
    if said := said_in_words(typed):
        if spelled(said["type"]) == "accept" and {"accept", "approve"} <= {*reading.offered}:
            raise Refused(
                '"Accept" is ambiguous here, so nothing was done. Write `overrule` to take the '
                "invalid output, or `approve` to call again."
            )
        return {**others, **said}
    if _JSON.match(typed):
        return {**others, "resume": typed}
    kind = "comment" if "comment" in reading.offered else "reject"
    return {**others, "type": kind, "reason": others.get("reason") or text}


def _responded(entry: Entry, _: Reading) -> Entry:
    """Read the `respond` decision of LangChain, which has the output under the key `message`."""
    known = {"output", *ROWS["respond"].parts}
    if known & entry.keys() or entry.get("message") is None:
        return entry
    return {**without(entry, "message"), "output": entry["message"]}


def _cancelled(entry: Entry, _: Reading) -> Entry:
    closed = {"type": "reject"} if entry[CANCELLED] is True else {}
    return closed | without(entry, CANCELLED)


CANCELLED = "__agui_cancelled__"

CLIENTS = (
    Client("text", lambda answer: isinstance(answer, str)),
    Client(
        "agent-inbox",
        is_array,
        draw=lambda form: {
            "action_request": {"action": form.title, "args": form.args},
            "config": {
                "allow_accept": "approve" in form.offered,
                "allow_edit": "edit" in form.offered,
                # The response box can send each of the other decisions, as a word or as JSON.
                "allow_respond": any(kind not in ("approve", "edit") for kind in form.offered),
                "allow_ignore": "reject" in form.offered,
            },
        },
        words={"response": _boxed, "accept": _accepted},
        keys={"args": _args},
    ),
    Client(
        "agent-chat-ui",  # LangChain's middleware for people sends the same answers.
        lambda answer: is_object(answer) and "decisions" in answer,
        draw=lambda form: {
            "action_requests": [
                {
                    "name": form.title,
                    "args": form.args,
                    "description": form.description,
                    "arguments": form.args,  # Agent Inbox reads the same request with this key.
                }
            ],
            "review_configs": [{"action_name": form.title, "allowed_decisions": form.offered}],
        },
        keys={"edited_action": _form("edited_action")},
        words={"respond": _responded},
    ),
    Client(
        "ag-ui",
        lambda answer: is_object(answer) and CANCELLED in answer,
        draw=lambda form: {
            "reason": INTERVENTION,
            "message": form.message,
            "response_schema": form.schema,
        },
        keys={CANCELLED: _cancelled},
    ),
    Client(
        # Studio, terminals and programs send a decision as JSON, or they send only the revised
        # params.
        "api",
        lambda _: True,
        draw=lambda form: {"description": form.description},
        keys={key: _params(key) for key in ("revised_params", "revisedParams")},
    ),
)
"""All clients. The last row gets every answer that no other row recognises."""


def channel_of(answer: Any) -> str:
    """Return the name of the client that sends answers in this form; `api` if unknown.

    Example:
        >>> channel_of([{"type": "accept", "args": None}]), channel_of("approve")
        ('agent-inbox', 'text')
    """
    while is_object(answer) and "resume" in answer:
        answer = answer["resume"]
    return next(client.channel for client in CLIENTS if client.is_sender(answer))


def translated(entry: Entry, reading: Reading) -> Entry:
    """Replace the words and keys of all clients by those of this library."""
    for client in CLIENTS:
        if client.words and (read := client.words.get(word_of(entry) or "")):
            entry = read(entry, reading)
        for key, read_key in client.keys.items():
            entry = read_key(entry, reading) if key in entry else entry
    return entry
