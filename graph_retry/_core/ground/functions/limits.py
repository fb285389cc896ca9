"""Limit the time of one request: in total, and without any progress.

Progress is a piece of a stream, a custom event, an event of a LangChain callback, or a call of
`runtime.heartbeat()`, as in LangGraph's `TimeoutPolicy`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langgraph.types import StreamWriter, TimeoutPolicy


class Limits:
    """The limits of one request, and the time of its last progress."""

    def __init__(self, policy: TimeoutPolicy | None) -> None:
        """Start the clocks."""
        self._run = cast("float | None", policy and policy.run_timeout)
        self._idle = cast("float | None", policy and policy.idle_timeout)
        self._only_heartbeats = policy is not None and policy.refresh_on == "heartbeat"
        self._began = self._last = time.monotonic()

    @property
    def given(self) -> bool:
        """Whether any limit is set."""
        return self._run is not None or self._idle is not None

    @property
    def deadline(self) -> float | None:
        """The `time.monotonic()` at which the total limit ends; None without a total limit."""
        return None if self._run is None else self._began + self._run

    @property
    def heartbeat(self) -> Callable[[], None] | None:
        """The function by which user code reports progress; None if progress is not limited."""
        return None if self._idle is None else self._beat

    def _beat(self) -> None:
        self._last = time.monotonic()

    def touch(self) -> None:
        """Record progress that the library notices. If only heartbeats count, do nothing."""
        if not self._only_heartbeats:
            self._last = time.monotonic()

    @property
    def left(self) -> float | None:
        """The seconds until the first limit ends; 0 if one has ended; None without a limit."""
        ends = [self.deadline] if self.deadline is not None else []
        if self._idle is not None:
            ends.append(self._last + self._idle)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def over(self) -> TimeoutError:
        """Return the error that says which limit has ended."""
        deadline = self.deadline
        if deadline is not None and time.monotonic() >= deadline:
            return TimeoutError(f"no result within {self._run:g} s")
        return TimeoutError(f"no progress within {self._idle:g} s")

    def watched(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Return a copy of a config in which events of LangChain callbacks count as progress."""
        if config is None or self._idle is None or self._only_heartbeats:
            return config
        # LangChain's `merge_configs` would bring in the config of the running step as well.
        callbacks: Any = config.get("callbacks")
        if isinstance(callbacks, BaseCallbackManager):
            callbacks = callbacks.copy()
            callbacks.add_handler(_Heard(self.touch), inherit=True)
        else:
            callbacks = [*(callbacks or ()), _Heard(self.touch)]
        return {**config, "callbacks": callbacks}

    def heard(self, write: StreamWriter | None) -> StreamWriter | None:
        """Return a writer of custom events for which each event counts as progress."""
        if write is None or self._idle is None:
            return write

        def written(event: Any) -> None:
            self.touch()
            write(event)

        return written

    def result(self, future: Future[Any]) -> Any:
        """Wait for the result of a function that runs in a thread.

        Raises:
            TimeoutError: If a limit has ended.
        """
        while True:
            try:
                return future.result(self.left)
            except TimeoutError:
                # The function itself may have raised it.
                if future.done():
                    raise
                if self.left == 0:
                    raise self.over() from None

    @asynccontextmanager
    async def cancelling(self) -> AsyncGenerator[None]:
        """Cancel the code in the `async with` block when a limit ends.

        Raises:
            TimeoutError: If a limit has ended.
        """
        loop, timer = asyncio.get_running_loop(), None
        scope = asyncio.timeout(None)

        def look() -> None:
            nonlocal timer
            left = self.left
            if left is not None and left > 0:
                timer = loop.call_later(left, look)
            elif left is not None:
                scope.reschedule(loop.time())

        try:
            async with scope:
                look()
                try:
                    yield
                finally:
                    if timer is not None:
                        timer.cancel()
        except TimeoutError:
            if scope.expired():
                raise self.over() from None
            raise


class _Heard(BaseCallbackHandler):
    """A LangChain callback handler that records each event as progress."""

    run_inline = True

    def __init__(self, touch: Callable[[], None]) -> None:
        self._touch = touch

    def _heard(self, *_: Any, **__: Any) -> None:
        self._touch()

    on_chat_model_start = on_llm_start = on_llm_new_token = on_llm_end = on_llm_error = _heard
    on_chain_start = on_chain_end = on_chain_error = on_tool_start = on_tool_end = _heard
    on_tool_error = on_retriever_start = on_retriever_end = on_retriever_error = _heard
    on_custom_event = on_text = on_retry = _heard
