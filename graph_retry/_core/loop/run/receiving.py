"""Receive a streamed output: join its pieces, emit the value so far, and stop a hopeless stream."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graph_retry._core.ground.issues import attempt
from graph_retry._core.ground.json import ABSENT
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.redact import redacted
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.loop.run.step import StepInput
from graph_retry._core.output.pieces import Pieces
from graph_retry._core.output.validator import Validator
from graph_retry.records import Attempt

if TYPE_CHECKING:
    from graph_retry._core.output.partial.early_end import Watch
    from graph_retry._core.output.partial.growing import GrowingArguments


_LOG = logging.getLogger("graph_retry")
_REPEATS = (
    "each piece of the stream of `%s` begins with the piece before, but the pieces are joined: "
    "yield only the new text of each piece, or return the last piece"
)


class Reception:
    """Receives the stream of one request. If nothing is streamed, `take` is never called."""

    def __init__(self, given: StepInput, attempt: int, touch: Callable[[], None]) -> None:
        self._run, self._attempt, self._touch = given.run, attempt, touch
        self._validator, self._settings = given.plan.validator, given.plan.settings
        self._ended = False
        self._lost: Watch | None = None

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces()

    @cached_property
    def _arguments(self) -> GrowingArguments | None:
        from graph_retry._core.output.partial.growing import GrowingArguments  # noqa: PLC0415 - only streams need it

        return None if self._validator is None else GrowingArguments(self._validator)

    @cached_property
    def _text(self) -> Watch | None:
        return _watch(self._validator, self._settings)

    @cached_property
    def _calls(self) -> Watch | None:
        return _watch(self._validator, self._settings)

    def take(self, piece: Any) -> bool:
        """Take the next piece. Return whether to close the stream."""
        self._touch()
        if self._ended:
            return True
        text, calls = self._pieces.add(piece)
        if text:
            self._show(self._text, text)
        if calls and self._arguments is not None:
            self._show(self._calls, self._arguments.add(calls))
        return self._lost is not None

    def _show(self, watch: Watch | None, text: str) -> None:
        """Parse more text. Emit the value so far, or record that the text can never be valid."""
        if watch is None or self._lost is not None:
            return
        has_news = watch.add(text)
        if watch.failure is not None:
            self._lost = watch
        elif has_news:
            redact = self._settings.redact
            # Unfinished texts are left out, because a redactor may not recognise a private text by
            # its beginning.
            value = redacted(watch.closed_value, redact) if redact else watch.value
            if value is not ABSENT:
                self._run.emit("partial_output", self._attempt, value=value)

    def end(self) -> None:
        """Make the stream close at its next piece, because the request is over."""
        self._ended = True

    def result(self) -> Any:
        """Return the joined pieces, as a function without a stream would return them."""
        if self._pieces.repeats:
            warn_once(_LOG, _REPEATS, self._settings.name)
        return self._pieces.result(as_message=self._validator is None)

    @property
    def received(self) -> Any:
        """The joined pieces of a stream that broke off, or None if there are none to join."""
        result, failed = attempt(self.result)
        return None if self._pieces.is_empty or failed else result

    @property
    def stopped(self) -> dict[str, Any]:
        """The fields of the record for a stream that was stopped early; otherwise {}."""
        stopped = _stopped(self._lost)
        return {**stopped, "raw": {"text": self._lost.text}} if self._lost else stopped


def stopped_again(record: Attempt, validator: Validator, settings: Settings) -> dict[str, Any]:
    """Check again the text of a stream that was stopped early; return the record's new fields."""
    text = (record["raw"] or {}).get("text")
    if text is None or not record.get("stopped_early"):
        return {}
    again = _watch(validator, settings)
    if again is not None:
        again.add(text)
    return _stopped(again)


def _watch(validator: Validator | None, settings: Settings) -> Watch | None:
    from graph_retry._core.output.partial.early_end import Watch  # noqa: PLC0415 - only streams need it

    if settings.format is not None:
        return None
    level, function = settings.repair
    # A part of a text proves nothing, because a user's repair function may repair the whole text.
    judges = settings.stop_early and function is None
    return Watch(validator, level, judges=judges)


def _stopped(watch: Watch | None) -> dict[str, Any]:
    if watch is None or watch.failure is None:
        return {}
    return {"failure": watch.failure, "issues": watch.issues, "stopped_early": True}
