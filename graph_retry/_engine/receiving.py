"""Receive a streamed answer: put it together, tell its progress, stop what cannot become valid."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, message_chunk_to_message

from graph_retry._engine.finish import emit
from graph_retry._engine.plan import Plan
from graph_retry._output.partial.watch import Watch
from graph_retry._output.pieces import Pieces
from graph_retry._output.validator import Validator
from graph_retry._redact import redacted
from graph_retry.options import Settings
from graph_retry.records import Attempt


class Reception:
    """What one request's stream is given to; does nothing for a call that does not stream."""

    def __init__(self, plan: Plan[Any], attempt: int) -> None:
        self._settings, self._attempt = plan.settings, attempt
        self._keeps_result = plan.validator is None
        self._pieces, self._ended = Pieces(), False
        self._watch = _watch(plan.validator, plan.settings)

    def take(self, piece: Any) -> bool:
        """Take the next piece; tell whether the stream is to be closed."""
        if self._ended:
            return True
        text = self._pieces.add(piece)
        if self._watch is None or not text:
            return False
        has_news = self._watch.add(text)
        if self._watch.failure is not None:
            return True
        if has_news:
            value = redacted(self._watch.value, self._settings.redact)
            emit("partial_output", self._settings.name, self._attempt, value=value)
        return False

    def end(self) -> None:
        """Have a stream closed that is still read although its time is over."""
        self._ended = True

    def result(self) -> Any:
        """Return what the stream gave, as a call that does not stream returns it."""
        result = self._pieces.result()
        is_message = self._keeps_result and isinstance(result, BaseMessage)
        return message_chunk_to_message(result) if is_message else result

    @property
    def stopped(self) -> dict[str, Any]:
        """What a stopped stream adds to the attempt's record; nothing if it was not stopped."""
        return _stopped(self._watch)


def stopped_again(record: Attempt, validator: Validator, settings: Settings) -> dict[str, Any]:
    """Return what stopped an attempt, judged once more; nothing if it would not be stopped."""
    text = (record["raw"] or {}).get("text")
    if text is None or not record.get("stopped_early"):
        return {}
    again = _watch(validator, settings)
    if again is not None:
        again.add(text)
    return _stopped(again)


def _watch(validator: Validator | None, settings: Settings) -> Watch | None:
    if validator is None or settings.format is not None:
        return None
    level, function = settings.repair
    # What a function of the user's makes of the text, nobody knows before.
    return Watch(validator, level, judges=settings.stop_early and function is None)


def _stopped(watch: Watch | None) -> dict[str, Any]:
    if watch is None or watch.failure is None:
        return {}
    return {"failure": watch.failure, "issues": watch.issues, "stopped_early": True}
