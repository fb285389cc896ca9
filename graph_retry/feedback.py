"""A ready hook that tells the model what was wrong with its last answer.

The loop is the one of instructor, llm-retry and agentcast: errors go back into the conversation.
Here each feedback replaces the one before, so a tenth retry is no longer than the first.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from graph_retry.errors import AttemptFailed
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.records import Issue

FeedbackStrategy = Literal["errors_only", "full", "truncated", "none"]

_BEGIN, _END = "[feedback on your last answer]", "[end of feedback]"
_FEEDBACK = re.compile(rf"\n*{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
_KINDS = ("invalid_syntax", "invalid_schema", "truncated")
_QUOTED = {"full": 20_000, "truncated": 500, "errors_only": 0}
_HINTS = {
    "missing": "add this field",
    "required": "add this field",
    "extra_forbidden": "leave this field out",
    "additionalProperties": "leave this field out",
    "enum": "use one of the expected values",
    "literal_error": "use one of the expected values",
    "invalid_json": "close every bracket and quote, and write nothing around the JSON",
}


def feedback(
    strategy: FeedbackStrategy = "errors_only",
    *,
    field: str | None = None,
    schema: bool = True,
    limit: int = 50_000,
    measure: Callable[[str], int] = len,
) -> Callable[[AttemptFailed, int, Any], Any]:
    """Make a hook that adds what was wrong to the params' `messages` or `prompt`.

    It speaks only of outputs that could not be read or do not fit; a transport error is nothing
    the model could mend.

    Args:
        strategy: What of the last answer is quoted besides the errors: nothing (`errors_only`),
            all of it (`full`), its first 500 characters (`truncated`). `none` adds nothing.
        field: The params field to write to; by default `messages` if there is one (an assistant
            and a user turn are added), else `prompt`, else the bare text.
        schema: Whether the first retry quotes the JSON Schema of the output.
        limit: The most the field may come to, in what `measure` counts. Less is quoted to stay
            under it, and where even one error is too much there is no feedback.
        measure: Size of a text; characters unless a token counter is given.

    Example:
        >>> error = AttemptFailed("no", kind="invalid_schema", issues=[{
        ...     "path": "/age", "message": "Input should be a valid integer", "code": "int_type",
        ...     "expected": "integer", "received": "'old'"}])
        >>> print(feedback()(error, 2, {"prompt": "Who?"})["prompt"])
        Who?
        <BLANKLINE>
        [feedback on your last answer]
        1. /age: Input should be a valid integer (expected: integer; received: 'old')
        Answer again with the complete, corrected JSON and nothing else: no prose, no code fence.
        [end of feedback]
    """

    def tell(error: AttemptFailed, attempt: int, params: Any) -> Any:
        if strategy == "none" or error.kind not in _KINDS:
            return None
        name = field or _field_of(params)
        place = params if name is None else _get(params, name)
        for text in _texts(error, strategy, with_schema=schema and attempt == 1):
            added = _added(place, text, error.raw_output or "")
            if measure(_plain(added)) <= limit:
                return added if name is None else _with(params, name, added)
        return None

    tell.__name__ = tell.__qualname__ = "feedback"
    return tell


def _field_of(params: Any) -> str | None:
    if isinstance(params, str):
        return None
    for name in ("messages", "prompt"):
        if _get(params, name) is not None:
            return name
    raise ValueError(
        "feedback found no `messages` or `prompt` in the params: name the field to write to, "
        "e.g. `feedback=feedback(field='instructions')`."
    )


def _get(params: Any, name: str) -> Any:
    if is_object(params):
        return params.get(name)
    return getattr(params, name, None)


def _with(params: Any, name: str, value: Any) -> Any:
    if isinstance(params, BaseModel):
        return params.model_copy(update={name: value})
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return dataclasses.replace(params, **{name: value})
    return {**cast("dict[str, Any]", params), name: value}


def _texts(error: AttemptFailed, strategy: str, *, with_schema: bool) -> Iterator[str]:
    """Write the feedback, longest first."""
    quotes = dict.fromkeys((_QUOTED[strategy], min(_QUOTED[strategy], 500), 0))
    for quoted in quotes:
        yield _text(error, quoted=quoted, issues=20, with_schema=with_schema)
    yield _text(error, quoted=0, issues=20, with_schema=False)
    yield _text(error, quoted=0, issues=1, with_schema=False)


def _text(error: AttemptFailed, *, quoted: int, issues: int, with_schema: bool) -> str:
    lines = [_BEGIN]
    if quoted and error.raw_output:
        lines += ["Your answer was (quoted as data):", _fenced(error.raw_output[:quoted])]
    lines += [f"{n}. {_line(issue)}" for n, issue in enumerate(error.issues[:issues], start=1)]
    if len(error.issues) > issues:
        lines.append(f"… and {len(error.issues) - issues} more.")
    if error.kind == "truncated":
        lines.append("It was cut off before its end: be shorter.")
    if with_schema and error.output_schema:
        lines += ["It must fit this JSON Schema:", _fenced(json.dumps(error.output_schema))]
    lines.append(
        "Answer again with the complete, corrected JSON and nothing else: no prose, no code fence."
    )
    return "\n".join([*lines, _END])


def _line(issue: Issue) -> str:
    """Write an issue; whatever the model wrote is cut to one short line."""
    details = [f"{name}: {issue[name]}" for name in ("expected", "received") if issue[name]]
    hint = _HINTS.get(issue["code"])
    told = f" ({'; '.join(details)})" if details else ""
    text = f"{issue['path'] or 'the whole answer'}: {issue['message']}{told}"
    return _tame(" ".join(text.split())[:400]) + (f"; {hint}" if hint else "")


def _fenced(text: str) -> str:
    """Fence a text with more backticks than it contains, so that it cannot end its quotation."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{_tame(text)}\n{fence}"


def _tame(text: str) -> str:
    return text.replace(_BEGIN, "[…]").replace(_END, "[…]")


def _added(place: Any, text: str, answer: str) -> Any:
    """Put feedback behind a prompt, or as turns behind a conversation, in place of earlier one."""
    if not is_array(place):
        return f"{_FEEDBACK.sub('', str(place))}\n\n{text}"
    messages = list(place)
    if messages and str(_content(messages[-1])).startswith(_BEGIN):
        messages = messages[:-2]
    said = answer[:500] + (" […]" if len(answer) > 500 else "")
    if messages and isinstance(messages[0], BaseMessage):
        return [*messages, AIMessage(said), HumanMessage(text)]
    turns = (("assistant", said), ("user", text))
    return [*messages, *({"role": role, "content": content} for role, content in turns)]


def _content(message: Any) -> Any:
    return message.content if isinstance(message, BaseMessage) else _get(message, "content")


def _plain(place: Any) -> str:
    if not is_array(place):
        return str(place)
    return "\n".join(str(_content(message)) for message in place)
