"""Test what is built on a retry loop: scripted models, ledgers as scripts, runs cut short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry.answering import pending_reviews, resume
from graph_retry.history import attempts_of
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.scripted import ScriptedLLM, from_ledger

__all__ = ["ScriptedLLM", "assert_replayable", "from_ledger"]

_VOLATILE = ("started_at", "duration_s", "idempotency_key", "review_id", "at")


def assert_replayable(
    make_graph: Callable[[ScriptedLLM, InMemorySaver], Any],
    given: Any,
    answers: Sequence[Mapping[str, Any]] = (),
    *,
    steps: Sequence[Any],
) -> int:
    """Stop a run after every checkpoint, continue it in a fresh graph, and demand the same result.

    `make_graph` compiles the graph around a model and a checkpointer, `answers` are decisions in
    the order of the reviews, and every step of the script must be called exactly once. Returns
    the number of checkpoints the run was stopped after.

    Raises:
        AssertionError: If a call was repeated or left out, or state or ledger came out different.

    Example:
        >>> from graph_retry import create_retry_node, edit
        >>> def make_graph(llm, saver):
        ...     return create_retry_node(llm, dict, output=int).copy({"checkpointer": saver})
        >>> answers = [edit(prompt="a number")]
        >>> assert_replayable(make_graph, {"params": {}}, answers, steps=["one", "1"]) > 5
        True
    """
    _, *whole = _run(make_graph, given, answers, steps, None)
    stop = 0
    while True:
        stopped, *cut = _run(make_graph, given, answers, steps, stop)
        if not stopped:
            return stop
        if cut != whole:
            raise AssertionError(f"stopped after checkpoint {stop} it gives {cut}, not {whole}")
        stop += 1


class _StoppedError(Exception):
    pass


class _StoppingSaver(InMemorySaver):
    """Ends the run after some checkpoints, as the end of its process would."""

    def __init__(self, stop: int | None) -> None:
        super().__init__()
        self._stop = stop
        self._saved = count()  # shared by the copies LangGraph makes under strict msgpack

    def put(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        saved = super().put(*args, **kwargs)
        if next(self._saved) == self._stop:
            raise _StoppedError
        return saved


def _run(
    make: Any, given: Any, answers: Any, steps: Any, stop: int | None
) -> tuple[bool, Any, Any]:
    saver, config = _StoppingSaver(stop), RunnableConfig(configurable={"thread_id": "replay"})
    llm, left, chosen = ScriptedLLM(*steps), list(answers), dict[str, Any]()
    graph, stopped = make(llm, saver), False
    ready: dict[str, Any] | None = None
    while True:
        try:
            if ready is None:
                graph.invoke(given, config, durability="sync")
            else:
                resume(graph, config, answers=ready, durability="sync")
        except _StoppedError:
            graph, stopped = make(llm, saver), True
            graph.invoke(None, config, durability="sync")
        reviews = pending_reviews(graph, config)
        for review in reviews:
            if review.review_id not in chosen and left:
                chosen[review.review_id] = left.pop(0)
        ready = {r.review_id: chosen[r.review_id] for r in reviews if r.review_id in chosen}
        if not ready:
            break
    llm.assert_finished()
    ledgers = [ledger.attempts for ledger in attempts_of(graph, config)]
    return stopped, _stable(graph.get_state(config).values), _stable(ledgers)


def _stable(value: Any) -> Any:
    """Leave out what no two runs have in common."""
    if is_object(value):
        return {key: _stable(each) for key, each in value.items() if key not in _VOLATILE}
    return [_stable(each) for each in value] if is_array(value) else value
