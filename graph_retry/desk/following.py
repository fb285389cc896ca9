"""Run a thread with the answers to its reviews, and follow its calls, for page and console.

LangGraph's `RunControl` stops a run after its current step. This step is saved, so no call is paid
twice when the thread continues.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import RunControl

from graph_retry.desk.newest import Newest
from graph_retry.desk.texts import said
from graph_retry.plugins import counted, is_object
from graph_retry.threads import aresumption, resumption

Place = tuple[str, ...]

CALLS = 100
"""Number of calls of a run that are followed. Only the newest calls are."""

_ABOUT = {"event", "name", "attempt"}

SHOWN = 2_000
"""Number of characters that are kept of an arriving text, from its end."""


@dataclass
class Live:
    """A running attempt: its number, and the length and the end of its text so far."""

    name: str
    attempt: int
    began: float = field(default_factory=time.monotonic)
    length: int = 0
    end: str = ""
    status: str = ""

    def __str__(self) -> str:
        told = self.status or f"running for {time.monotonic() - self.began:.0f} s"
        if self.length and not self.status:
            told += f" · {counted(self.length, 'character')} so far"
        return f"attempt {self.attempt} · {told}"


@dataclass
class Running:
    """A run of a thread. `live` has the latest attempt of each running call, by the call's place.

    `is_cancelled` means that a server has cancelled the run, which then ends without an error. The
    lock `cancelling` is held during the request to the server.
    """

    began: float = field(default_factory=time.monotonic)
    live: dict[Place, Live] = field(default_factory=lambda: Newest[Place, Live](CALLS))
    control: RunControl = field(default_factory=RunControl)
    is_cancelled: bool = False
    cancelling: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __str__(self) -> str:
        calls = [f"{live.name}: {live}" for live in self.live.values() if not live.status]
        return "; ".join(calls) or f"running for {time.monotonic() - self.began:.0f} s"

    @property
    def is_stopping(self) -> bool:
        """Whether a person has stopped the run."""
        return self.control.drain_requested

    def hear(self, place: Place, event: Any) -> None:
        """Process the stream events of calls. Other events of the graph are ignored."""
        if not (is_object(event) and event.get("type") == "graph_retry" and event.keys() >= _ABOUT):
            return
        where = (*place, str(event["name"]))
        if event["event"] == "attempt_started":
            self.live[where] = Live(where[-1], event["attempt"])
        elif (live := self.live.get(where)) is not None:
            if "value" in event:
                text = said(event["value"])
                live.length, live.end = len(text), text[-SHOWN:]
            live.status = str(event.get("status", live.status))

    async def run(
        self,
        graph: Any,
        config: RunnableConfig,
        answers: Mapping[str, Any] | None,
        context: Any = None,
        *,
        in_thread: bool = False,
    ) -> Any:
        """Resume a thread of a local graph, and return the graph's state.

        Without `answers`, the thread continues from its last checkpoint. With `in_thread`, the
        graph's sync methods run in an OS thread. This is for a checkpointer that has only sync
        methods.

        Raises:
            GraphDrained: If the run was stopped.
        """
        options: dict[str, Any] = {"stream_mode": ["custom", "values"], "subgraphs": True}
        options |= {"durability": "sync", "context": context, "control": self.control}
        state: Any = None

        def take(piece: Any) -> Any:
            place, mode, value = piece
            if mode == "custom":
                self.hear(place, value)
            return value if mode == "values" and not place else state

        def sync() -> Any:
            nonlocal state
            with resumption(graph, config, answers=answers) as given:
                for piece in graph.stream(given, config, **options):
                    state = take(piece)
            return state

        if in_thread:
            return await asyncio.to_thread(sync)
        async with aresumption(graph, config, answers=answers) as given:
            async for piece in graph.astream(given, config, **options):
                state = take(piece)
        return state
