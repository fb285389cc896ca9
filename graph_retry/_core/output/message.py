"""Validate the message of a chat model as it is, for a node that streams its reply."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from pydantic import ValidationError

from graph_retry._core.ground.issues import issue, pydantic_issues
from graph_retry._core.ground.json import is_object
from graph_retry._core.output.completion import dumped_message
from graph_retry._core.output.validator import Validator
from graph_retry.lossless._ground import text_of
from graph_retry.records import Issue, Repair


class MessageValidator(Validator):
    """Accept a model's message, and keep its id, because its tokens were streamed under this id.

    A message is valid if it has text or calls a tool. A person may also give only a text.
    """

    name = "AIMessage"
    wants_message = True

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        given = {"content": value} if isinstance(value, str) else value
        if isinstance(given, AIMessage):
            given = dumped_message(given)
        if not is_object(given):
            what = "a reply is a text, or a message: an object with `content` or `tool_calls`"
            return None, [issue("", what, "no_message", "a text or a message", repr(value))]
        try:
            message = AIMessage.model_validate({"content": "", **given})
        except ValidationError as error:
            return None, pydantic_issues(error, given)
        except (TypeError, ValueError) as error:  # LangChain reads tool calls before pydantic does.
            return None, [issue("", text_of(error), "no_message")]
        if not message.text.strip() and not message.tool_calls:
            return None, [issue("", "the reply has no text and calls no tool", "empty_message")]
        return message, []

    def _kept(
        self,
        accepted: Any,
        given: Any,  # noqa: ARG002
    ) -> tuple[Any, list[Repair], list[Issue]]:
        return dumped_message(accepted), [], []
