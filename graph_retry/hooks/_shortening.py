"""A ready-made hook that shortens a conversation which is too long for the model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain_core import messages as langchain_messages
from langchain_core.messages import convert_to_messages
from langchain_core.messages.utils import count_tokens_approximately

from graph_retry._core.params.prompt import Prompt
from graph_retry.errors import AttemptFailed
from graph_retry.hooks._escalation import Changes, ChangingHook
from graph_retry.plugins import Count, checked, is_array

_trim = cast("Any", langchain_messages).trim_messages  # LangChain leaves some of its types open.
Summary = Callable[[list[Any]], str | Awaitable[str]]


@checked
def shorten_history(
    most: Count | None = None,
    *,
    field: str | None = None,
    summary: Summary | None = None,
    count: Callable[..., int] = count_tokens_approximately,
) -> ChangingHook:
    """Make a hook that removes the oldest messages after a request exceeded the context window.

    The hook acts only on failures of the kind `context_overflow`. It removes messages with
    LangChain's `trim_messages`. System messages stay, and the first message after them is a user's
    message. If the shortened conversation is still too long, the next attempt has half the tokens.

    Args:
        most: Maximum number of tokens to keep (default: half of the current number).
        field: The params field with the messages (default: `messages`).
        summary: A sync or async function of the removed messages. It returns a text, and a user
            message with this text replaces the removed messages (default: no summary).
        count: A function that counts the tokens of a list of messages, as in `trim_messages`.

    Raises:
        ValueError: Before the first call, if the params have no list of messages.

    Example:
        >>> hook = shorten_history(most=10)
        >>> said = [{"role": "user", "content": f"{n} " + "long " * 9} for n in range(3)]
        >>> too_long = AttemptFailed("too long", kind="context_overflow")
        >>> hook(too_long, 1, {"messages": [*said, {"role": "user", "content": "And now?"}]})
        {'messages': [{'role': 'user', 'content': 'And now?'}]}
    """
    name = field or "messages"

    def changes(error: AttemptFailed, attempt: int, old: Changes) -> Changes | Awaitable[Changes]:
        del attempt
        if error.kind != "context_overflow":
            return {}
        messages: list[Any] = [*old[name]]
        known = [  # Each id is a position, so that the kept messages are found after trimming.
            message.model_copy(update={"id": str(number)})
            for number, message in enumerate(convert_to_messages(messages))
        ]
        there = count(known)
        trimmed = _trim(
            known,
            max_tokens=there // 2 if most is None or there <= most else most,
            token_counter=count,
            strategy="last",
            include_system=True,
            start_on="human",
        )
        kept = {int(str(message.id)) for message in trimmed}
        left = [message for number, message in enumerate(messages) if number in kept]
        if len(left) == len(messages) or all(map(Prompt.is_system, left)):
            return {}
        gone = [message for number, message in enumerate(messages) if number not in kept]
        told = "" if summary is None else summary(gone)
        if inspect.isawaitable(told):
            return _later(name, left, told)
        return {name: _with_summary(left, str(told))}

    def check(old: Changes) -> None:
        if not is_array(old[name]):
            raise ValueError(
                f"`shorten_history` needs a list of messages, but the params' `{name}` is not "
                "one: name the right field, e.g. `shorten_history(field='history')`."
            )

    return ChangingHook("shorten_history", (name,), changes, check)


async def _later(name: str, left: list[Any], told: Awaitable[str]) -> Changes:
    return {name: _with_summary(left, str(await told))}


def _with_summary(left: list[Any], told: str) -> list[Any]:
    if not told:
        return left
    kept = Prompt({"messages": left})
    summary = kept.turns(("user", f"Summary of what was said before:\n{told}"))
    shorter: list[Any] = kept.adding("summary", summary, kept.after_system).value
    return shorter
