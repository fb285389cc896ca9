"""Collect the answers of LangChain's models during a call, because a user's function may drop them.

A chain such as `model.with_structured_output(Trip)` returns only an object or None, or raises an
error. The model's text, usage and stop reason would be lost. A LangChain callback receives every
answer, also in threads that LangChain starts. `register_configure_hook` is LangChain's public way
to add a callback to each model that runs in a context.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tracers.context import register_configure_hook

from graph_retry._core.ground.issues import attempt
from graph_retry._core.output.providers.objects import message_of

_heard: ContextVar[Heard | None] = ContextVar("graph_retry_heard", default=None)
register_configure_hook(_heard, inheritable=True)


class Heard(BaseCallbackHandler):
    """A LangChain callback that collects the models' answers during one request of a call.

    answers: The answers, in the order in which they arrived.
    sent: Values that an agent's middleware sent in place of those in the params. They become the
        field `sent` of the attempt's record.
    before_model: Functions that get the messages just before each model call.
    """

    run_inline = True  # The handler runs in the context of the model's caller.
    raise_error = True

    def __init__(self) -> None:
        self.answers: list[AIMessage] = []
        self.sent: dict[str, Any] = {}
        self.before_model: list[Callable[[list[BaseMessage]], None]] = []
        self._failed = False

    def on_chat_model_start(self, serialized: Any, messages: Any, **_: Any) -> None:
        """Call the functions in `before_model`. They may check what is sent to the model."""
        del serialized
        for check in self.before_model if _heard.get() is self else ():
            check(messages[0])

    def on_llm_end(self, response: Any, **_: Any) -> None:
        """Add a model's answer to `answers`. A call inside this call has its own `Heard` object."""
        message, failed = attempt(message_of, response)
        if _heard.get() is self and not failed and isinstance(message, AIMessage):
            self.answers.append(message)
            self._failed = False

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Record that the last request has no answer."""
        del error
        if _heard.get() is self:
            self._failed = True

    @property
    def last(self) -> AIMessage | None:
        """The last answer; None if there is none, or if the last request failed."""
        return None if self._failed or not self.answers else self.answers[-1]

    @property
    def usage(self) -> dict[str, Any] | None:
        """The summed token counts of all answers; None if no answer has token counts."""
        told = [answer.usage_metadata for answer in self.answers]
        counts: list[dict[str, Any]] = [{**usage} for usage in told if usage]
        names = ("input_tokens", "output_tokens", "total_tokens")
        total = {name: sum(count[name] for count in counts) for name in names}
        return counts[0] if len(counts) == 1 else total if counts else None

    def answer_of(self, result: Any) -> BaseMessage | None:
        """Return the last answer whose text is `result`. If there is none, return `last`."""
        if isinstance(result, str):
            same = [each for each in self.answers if str(each.text).strip() == result.strip()]
            return same[-1] if same else self.last
        return self.last

    @contextmanager
    def listening(self) -> Generator[None]:
        """Collect the answers of all models that run in the `with` block."""
        token = _heard.set(self)
        try:
            yield
        finally:
            _heard.reset(token)


def heard_now() -> Heard | None:
    """Return the object that collects the models' answers in this call; None outside of a call.

    Example:
        >>> heard_now() is None
        True
    """
    return _heard.get()
