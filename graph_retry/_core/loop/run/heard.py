"""What models of LangChain answered inside a call, whatever the user's function makes of it.

A chain such as `model.with_structured_output(Trip)` returns an object, None or an exception. The
text of the answer, its usage and its stop reason are lost on the way. A callback in the context of
the call hears every answer, also in threads that LangChain starts. (`register_configure_hook` is
the public way: LangChain adds the handler to every model that runs in this context.)
"""

from __future__ import annotations

from collections.abc import Generator
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
    """Hears the answers of models in one request of a call.

    answers: The answers, in the order in which they ended.
    sent: The field `sent` of the record, if middleware changed what a person saw.
    before_model: Called just before each model is called.
    """

    run_inline = True  # In the context of the model's caller, by which nested calls are told apart.
    raise_error = True

    def __init__(self) -> None:
        """Begin without an answer."""
        self.answers: list[AIMessage] = []
        self.sent: dict[str, Any] = {}
        self.before_model: list[Any] = []
        self._failed = False

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Let the maker of the request check what is sent."""
        if _heard.get() is self:
            for check in self.before_model:
                check()

    def on_llm_end(self, response: Any, **_: Any) -> None:
        """Keep an answer. One that belongs to a call inside this call is that call's."""
        message, failed = attempt(message_of, response)
        if _heard.get() is self and not failed and isinstance(message, AIMessage):
            self.answers.append(message)
            self._failed = False

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Note that the last request has no answer."""
        del error
        if _heard.get() is self:
            self._failed = True

    @property
    def last(self) -> AIMessage | None:
        """The last answer; None if there is none, or if the last request failed."""
        return None if self._failed or not self.answers else self.answers[-1]

    @property
    def usage(self) -> dict[str, Any] | None:
        """The token counts of all answers; None if none has any."""
        told = [answer.usage_metadata for answer in self.answers]
        counts: list[dict[str, Any]] = [{**usage} for usage in told if usage]
        names = ("input_tokens", "output_tokens", "total_tokens")
        total = {name: sum(count[name] for count in counts) for name in names}
        return counts[0] if len(counts) == 1 else total if counts else None

    def answer_of(self, result: Any) -> BaseMessage | None:
        """Return the answer that a result was made of: the one with its text, else the last."""
        if isinstance(result, str):
            same = [each for each in self.answers if str(each.text).strip() == result.strip()]
            return same[-1] if same else self.last
        return self.last

    @contextmanager
    def listening(self) -> Generator[None]:
        """Hear the models that run in this context."""
        token = _heard.set(self)
        try:
            yield
        finally:
            _heard.reset(token)


def heard_now() -> Heard | None:
    """Return the answers that the running call has heard; None outside of a call.

    Example:
        >>> heard_now() is None
        True
    """
    return _heard.get()
