"""The runs of a thread on a server: send answers, and find out which answer came first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException
from langgraph.types import Command, Interrupt
from pydantic_core import to_jsonable_python

from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.json import is_object
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.review.deadline import EXPIRE
from graph_retry._core.threads.saved.graphs import besides_place, client_of, invoke, thread_there
from graph_retry.errors import StaleDecision
from graph_retry.lossless._ground import as_repr

UNFINISHED = ("pending", "running")
_NEWEST = 20
"""How many of the newest runs are read, because runs of other people may precede our answer."""


class RemoteRuns:
    """The runs on one thread of a server, through which answers are sent.

    A server refuses an answer (HTTP 409) while the thread runs. A second answer to the same
    question is ignored, but the server reports success. Therefore the runs are listed before the
    review is read, and again after the answer was sent. If a new run in between has answered the
    review, it brought the first answer.
    """

    def __init__(
        self, graph: Any, config: RunnableConfig, *, context: Any = None, wait: bool = True
    ) -> None:
        self._graph, self._wait = graph, wait
        self._config, self._context = _as_sent(graph, config, context)
        self._thread_id = thread_there(config)
        self._finished: set[str] = set()
        self.is_asking = False
        self._mine: str | None = None

    async def _read(self) -> list[Any]:
        """List the runs of the thread, newest first."""
        read = partial(self._client.runs.list, self._thread_id, limit=_NEWEST)
        runs: list[Any] = await call(read)
        return runs

    @property
    def _client(self) -> Any:
        return client_of(self._graph)

    async def look(self) -> None:
        """Remember which runs have finished, because a finished run cannot answer an open review.

        `is_asking` tells whether an unfinished run brought no answer. Such a run may have asked the
        open question. An answer would cancel this run, and repeat its other work.
        """
        runs = await self._read()
        self.is_asking = any(
            run["status"] in UNFINISHED and _resume_of(run) is None for run in runs
        )
        self._finished = {run["run_id"] for run in runs if run["status"] not in UNFINISHED}

    async def answer(self, by_id: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Send answers, by interrupt id, in a new run of the thread. Return the resulting state.

        Raises:
            StaleDecision: If another answer came first, or the thread is running.
        """
        options = {**options, **self._context, "multitask_strategy": "reject"}
        go_on: Command[Any] | None = Command(resume=dict(by_id)) if by_id else None
        try:
            if self._wait:
                noting = {**options, "on_run_created": self._note}
                state = await invoke(self._graph, go_on, self._config, **noting)
            else:
                create = self._client.runs.create
                given = {"command": {"resume": dict(by_id)}, "config": _as_json(self._config)}
                place = (self._thread_id, self._graph.assistant_id)
                state = await call(partial(create, *place, **given, **options))
                self._note(state)
        except Exception as error:
            if http_status(error) != 409:
                if self._mine is not None:  # The server reports a run's error before the run ends.
                    await call(self._client.runs.join, self._thread_id, self._mine)
                raise
            first = await self._first(by_id)
            raise StaleDecision(
                f"thread {as_repr(self._thread_id)} is running on the server, so nothing was "
                f"saved: {first or 'read the thread again'}."
            ) from error
        if first := await self._first(by_id):
            raise StaleDecision(
                f"another answer on thread {as_repr(self._thread_id)} came first: {first}."
            )
        return state

    def _note(self, created: Any) -> None:
        self._mine = created["run_id"]

    async def cancel(self, interrupt_id: str | None) -> bool:
        """Cancel the unfinished run that answers a question. Return whether a run was cancelled."""
        for run in await self._read():
            resume = _resume_of(run) if run["status"] in UNFINISHED else None
            if is_object(resume) and interrupt_id in resume:
                place = self._thread_id, run["run_id"]
                try:
                    await call(partial(self._client.runs.cancel, *place, wait=True))
                except Exception as error:  # It has ended meanwhile.
                    if http_status(error) not in (404, 409):
                        raise
                    return False
                return True
        return False

    async def _first(self, by_id: Mapping[str, Any]) -> str | None:
        """Say who answered a review between our reading and our answer; None if nobody did."""
        runs = await self._read()
        ids = [run["run_id"] for run in runs]
        before = runs[ids.index(self._mine) + 1 :] if self._mine in ids else runs
        for run in reversed(before):
            for interrupt_id in by_id if run["run_id"] not in self._finished else ():
                if (answer := _answer_to(interrupt_id, run)) is not _ANOTHER:
                    at, by = _signed(run, answer)
                    what = (
                        "a run without an answer began" if answer is None else f"{by} continued it"
                    )
                    return f"{what} at {at}"
        return None

    async def questions(self) -> list[Any]:
        """Return the values of the thread's questions, even if another graph asked them."""
        thread = await call(self._client.threads.get, self._thread_id)
        return [question.value for question in listed_questions(thread)]

    async def asked(self) -> Sequence[Interrupt]:
        """Return the questions that the server lists for a thread, if the thread waits.

        The `next` and `tasks` of a server's state are empty for a node behind a join of edges, so
        the state lacks its questions (seen with langgraph-api 0.16.7).
        """
        thread = await call(self._client.threads.get, self._thread_id)
        return listed_questions(thread) if thread["status"] == "interrupted" else ()

    async def answers(self) -> list[tuple[str, str, str]]:
        """List the first answer to each question, as (time, author, review id or interrupt id)."""
        runs = await self._read()
        first: dict[str, tuple[str, str]] = {}
        names: dict[str, str] = {}
        for run in reversed(runs):
            resume = _resume_of(run)
            for interrupt_id, answer in resume.items() if is_object(resume) else ():
                first.setdefault(interrupt_id, _signed(run, answer))
                if is_object(answer) and "review_id" in answer:
                    names[str(answer["review_id"])] = interrupt_id
        ids = {**{name: name for name in first}, **names}
        return [(*first[interrupt_id], name) for name, interrupt_id in ids.items()]


def _as_sent(
    graph: Any, config: RunnableConfig, context: Any
) -> tuple[RunnableConfig, dict[str, Any]]:
    """Return the config and the context of a run in the form that a server accepts.

    A server refuses a run with both a context and a `configurable`. If both are given, the context
    is sent as a part of the `configurable`.
    """
    if context is None:
        return config, {}
    own = {**besides_place(getattr(graph, "config", None)), **besides_place(config)}
    if not own:
        return config, {"context": context}
    json_context = to_jsonable_python(context)
    if not is_object(json_context):
        came = quoted_with_article(type(context).__name__)
        raise TypeError(f"`context` is {came}: for a server, give a dict, a dataclass or a model.")
    return {**config, "configurable": {**config.get("configurable", {}), **json_context}}, {}


def _as_json(config: RunnableConfig) -> dict[str, Any]:
    names = ("tags", "metadata", "recursion_limit")
    sent: dict[str, Any] = {key: value for key, value in config.items() if key in names}
    return {**sent, "configurable": besides_place(config)}


def listed_questions(thread: Any) -> list[Interrupt]:
    """Return the questions of all tasks that a server lists for a thread."""
    by_task: dict[str, list[Any]] = thread.get("interrupts") or {}
    return [
        Interrupt(each["value"], each["id"], response_schema=each.get("response_schema"))
        for each in chain.from_iterable(by_task.values())
    ]


def http_status(error: Exception) -> int | None:
    """Return the HTTP status with which a server refused a request; None for other errors."""
    return getattr(getattr(error, "response", None), "status_code", None)


def is_error_of(kind: type[Exception], error: Exception) -> bool:
    """Return whether an error is of the class `kind`. A server's error is compared only by name.

    Example:
        >>> is_error_of(ValueError, RemoteException({"error": "ValueError", "message": "no"}))
        True
    """
    told: Any = error.args[0] if isinstance(error, RemoteException) and error.args else None
    return isinstance(error, kind) or (is_object(told) and told.get("error") == kind.__name__)


_ANOTHER: Any = object()


def _answer_to(interrupt_id: str, run: Any) -> Any:
    """Return a run's answer to a question; `_ANOTHER` if the run answers only other questions."""
    resume = _resume_of(run)
    by_id = is_object(resume) and all(re.fullmatch("[0-9a-f]{32}", key) for key in resume)
    return resume.get(interrupt_id, _ANOTHER) if by_id else resume


def _resume_of(run: Any) -> Any:
    command: Any = run["kwargs"].get("command") or {}
    return command.get("resume")


def _signed(run: Any, answer: Any) -> tuple[str, str]:
    """Return the time of an answer's run, and the author: `system`, `human` or `human:NAME`."""
    said: dict[str, Any] = answer if is_object(answer) else {}
    if said.get("type") == EXPIRE:
        return run["created_at"], "system"
    configurable = run["kwargs"].get("config", {}).get("configurable", {})
    by = configurable.get("langgraph_auth_user_id") or said.get("by")
    return run["created_at"], f"human:{by}" if by else "human"
