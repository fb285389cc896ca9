"""The formats for exported corrections: each converts rows in its own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import convert_to_openai_messages

from graph_retry.data._corrections.record import Correction, answer_text
from graph_retry.plugins import is_array, is_object
from graph_retry.records import STRUCTURED_RESPONSE

Format = Literal["rows", "openai", "preference", "pydantic-evals", "langsmith"]
"""A file format of `export`. `rows`: a `Correction` on each line. `openai`: chats for fine-tuning,
with outputs that people supplied. `preference`: OpenAI's preference pairs. `pydantic-evals`: one
data set of cases. `langsmith`: an example on each line."""

ToMessages = Callable[[dict[str, Any]], list[dict[str, Any]]]


_NO_PARAMS = "the record with its params was deleted"


class LeftOut(Exception):
    """A format cannot represent a row. The message is the reason."""


def _chat(row: Correction, messages: ToMessages | None) -> list[dict[str, Any]]:
    params = row["params"]
    if params is None:
        raise LeftOut(_NO_PARAMS)
    if messages is not None:
        return messages(params)
    bare = params.get("value") if params.keys() == {"value"} else None
    given = params.get("messages") or params.get("prompt") or bare
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not is_array(given):
        raise LeftOut("its params have no `messages` or `prompt`: give `messages=`")
    try:
        chat: list[dict[str, Any]] = convert_to_openai_messages(given)
    except Exception:  # noqa: BLE001 - LangChain raises errors of many types
        raise LeftOut("its `messages` are not chat messages: give `messages=`") from None
    system = params.get("system_prompt") if row["is_message"] else None
    return [{"role": "system", "content": system}, *chat] if system else chat


def _said(row: Correction, given: Any) -> dict[str, str]:
    """Return the assistant's message for a recorded output."""
    text = _words(given.get("value")) if row["is_message"] and given else answer_text(given)
    if not text:  # One empty message makes a provider refuse the whole file.
        raise LeftOut("one of its outputs is empty")
    return {"role": "assistant", "content": text}


def _words(message: Any) -> str:
    """Return the text of an agent's message. The message must have nothing but text."""
    message = message if is_object(message) else {}
    if STRUCTURED_RESPONSE in message:
        raise LeftOut("one of its outputs is an agent's structured response instead of text")
    if message.get("tool_calls") or message.get("invalid_tool_calls"):
        raise LeftOut("one of its outputs calls tools, whose definitions are not recorded")
    content = message.get("content", "")
    if not isinstance(content, str):
        raise LeftOut("one of its outputs is a message with more than text, such as a tool call")
    return content


def _as_row(row: Correction, messages: ToMessages | None) -> Any:
    del messages
    return row


def _as_chat(row: Correction, messages: ToMessages | None) -> Any:
    if row["how"] not in ("supplied", "own") or row["value_from"] != "person":
        raise LeftOut("no person supplied its output")
    return {"messages": [*_chat(row, messages), _said(row, {"value": row["value"]})]}


def _as_pair(row: Correction, messages: ToMessages | None) -> Any:
    if not row["pair"]:
        edited = row["how"] in ("edited", "commented")
        why = "its params were changed" if edited else "no person replaced its output"
        raise LeftOut(f"no pair: {why}")
    return {
        "input": {"messages": _chat(row, messages)},
        "preferred_output": [_said(row, {"value": row["value"]})],
        "non_preferred_output": [_said(row, row["raw"])],
    }


def _as_case(row: Correction, messages: ToMessages | None) -> Any:
    del messages
    if row["params"] is None:
        raise LeftOut(_NO_PARAMS)
    about = {name: value for name, value in row.items() if name not in ("params", "value")}
    expected = {"expected_output": row["value"]} if row["vouched"] else {}
    about |= {} if row["vouched"] else {"value": row["value"]}
    return {"name": row["id"], "inputs": row["params"], **expected, "metadata": about}


def _as_example(row: Correction, messages: ToMessages | None) -> Any:
    case = _as_case(row, messages)
    outputs = {"output": case["expected_output"]} if "expected_output" in case else None
    part = {"split": row["split"]} if "split" in row else {}
    return {
        "id": str(uuid5(NAMESPACE_URL, f"graph-retry:{row['id']}")),
        "inputs": case["inputs"],
        "outputs": outputs,
        "metadata": case["metadata"],
        **part,
    }


class Kind(NamedTuple):
    """A file format.

    `render` converts one row. `endings` are the allowed endings of the file's name. `head`,
    `between` and `end` are the texts before, between and after the rows.
    """

    render: Callable[[Correction, ToMessages | None], Any]
    endings: tuple[str, ...] = (".jsonl", ".ndjson")
    head: str = ""
    between: str = "\n"
    end: str = "\n"


FORMATS: dict[Format, Kind] = {
    "rows": Kind(_as_row),
    "openai": Kind(_as_chat),
    "preference": Kind(_as_pair),
    "pydantic-evals": Kind(
        _as_case,
        (".json",),
        '{"name": "corrections", "cases": [\n',
        ",\n",
        '\n], "evaluators": []}\n',
    ),
    "langsmith": Kind(_as_example),
}
