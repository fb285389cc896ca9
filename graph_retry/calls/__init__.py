"""The door for what makes calls in another form: an agent's tools, a framework's steps, a node.

`Call` runs a function of yours as a call, `JsonParams` has its params as JSON with a schema of your
own, and `Terms` has what a call is made and judged by, for calls that are made or judged again.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt

from graph_retry._core.ground.functions.awaiting import naming_twin
from graph_retry._core.ground.functions.signatures import LLMCall, OnRetry, name_of
from graph_retry._core.langgraph.calls import execution_in
from graph_retry._core.langgraph.run_config import thread_in_logs
from graph_retry._core.loop.after_attempt import ended_error
from graph_retry._core.loop.graph import function_graph, steps_allowed
from graph_retry._core.loop.outcome import restore_value
from graph_retry._core.loop.run.heard import Heard, heard_now
from graph_retry._core.loop.run.plan import Plan, make_plan
from graph_retry._core.loop.run.running import CALL
from graph_retry._core.loop.run.step import check_identity
from graph_retry._core.output.validator import Validator
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.state.identity import identity_of
from graph_retry._core.state.position import LOOP, fresh_loop, loop_of
from graph_retry._core.state.swallowed import reached_after
from graph_retry._core.state.transitions import WITH_OUTPUT
from graph_retry.lossless._ground import on_demand
from graph_retry.options import RetryOptions, settle
from graph_retry.records import Attempt

if TYPE_CHECKING:
    from graph_retry._core.params.json_params import JsonParams
    from graph_retry.calls._terms import Rejudged, Terms
else:
    __getattr__ = on_demand(
        __name__, "_core.params.json_params", "calls._terms", home="graph_retry"
    )

__all__ = [
    "Call",
    "Heard",
    "JsonParams",
    "ParamsCodec",
    "Rejudged",
    "RunningTask",
    "Terms",
    "heard_now",
    "running_task",
]

_paused: ContextVar[str | None] = ContextVar("graph_retry_paused", default=None)
"""The name of the call that has paused in this node.

A context variable holds exactly one node's call, because LangGraph runs each node in its own
context.
"""


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let the pause of a call pass; if user code runs on after it, refuse the node's next call.

    The refusal is an `Exception`. The same user code may catch it, so it is also logged. A
    `BaseException` would not be caught, but LangGraph's server never ends a run that raises one.

    Raises:
        PauseSwallowed: If an earlier call of this run of the node has paused already.
    """
    earlier = _paused.get()
    if earlier is not None:
        raise reached_after(name, earlier, thread_in_logs())
    try:
        yield
    except GraphInterrupt as pause:
        _paused.set(name)
        # If `llm_call` itself calls `interrupt`, LangGraph reports its question in the pauses of
        # two steps. Without this, clients would show it twice.
        asked = {question.id: question for question in pause.args[0]}
        passing = GraphInterrupt(tuple(asked.values()))
        # A traceback shows this, also inside the `ExceptionGroup` of a task group.
        passing.add_note(
            f"`{name}` waits for a person. This exception pauses the run, so let it pass. An "
            "`asyncio.TaskGroup` hides it from LangGraph: await calls with `gather_calls`."
        )
        raise passing from None


class Call:
    """One call of a function of yours, for code that makes calls in another form.

    `retry_llm_call`, the retry node, agents' models and tools, and whole nodes are such forms. The
    call has the identity of its place, pauses the run, and returns its output with its ledger.

    Args:
        llm_call: The function, which gets the params.
        params: The first params.
        on_retry: Hooks, as in `retry_llm_call`.
        output: The wanted output, as in `retry_llm_call`.
        options: See `RetryOptions`.
        codec: How the params become JSON that a person edits, if not by their class: `JsonParams`.

    Example:
        >>> call = Call(lambda params: params["n"] + 1, {"n": 1}, output=int)
        >>> output, attempts = call.invoke()
        >>> output, attempts[0]["status"]
        (2, 'succeeded')
    """

    def __init__(
        self,
        llm_call: LLMCall[Any, Any],
        params: Any,
        on_retry: OnRetry[Any] = None,
        output: Any = None,
        options: RetryOptions | None = None,
        codec: ParamsCodec[Any] | None = None,
    ) -> None:
        """Check the arguments; nothing is called yet."""
        settings = settle(name_of(llm_call, "llm_call"), "function", options or {})
        codec = (codec or ParamsCodec[Any].for_value(params)).for_one_run()
        self.plan: Plan[Any] = make_plan(llm_call, codec, on_retry, output, settings)
        self.graph = function_graph(settings)
        encoded = codec.encode(params)
        self._identity = identity_of(encoded, settings.key)
        self.config: RunnableConfig = {
            "configurable": {CALL: self.plan},
            "recursion_limit": steps_allowed(self.plan),
            "run_name": settings.name,
        }
        loop = {**fresh_loop(), "types": encoded.types, "identity": self._identity}
        self.inputs = {"params": encoded.view, LOOP: loop}

    def of_node(self, accepts: Validator | None) -> Self:
        """Make this the call of a whole node, and return it.

        `accepts` checks the outputs that people give.
        """
        self.plan = replace(self.plan, accepts=accepts, is_node=True)
        self.config["configurable"] = {CALL: self.plan}
        return self

    def invoke(self) -> tuple[Any, list[Attempt]]:
        """Make the call; return its output and its ledger."""
        with self.watched(is_sync=True):
            state = self.graph.invoke(self.inputs, self.config)
        return self.result(state), state["attempts"]

    async def ainvoke(self) -> tuple[Any, list[Attempt]]:
        """Do what `invoke` does, from async code."""
        with self.watched(is_sync=False):
            state = await self.graph.ainvoke(self.inputs, self.config)
        return self.result(state), state["attempts"]

    @contextmanager
    def watched(self, *, is_sync: bool) -> Generator[None, None, None]:
        """Watch the run of the graph.

        The interrupt of a call that waits passes through. If an async-only graph or saver runs in
        sync code, the error names `aretry_llm_call`.
        """
        named = naming_twin("aretry_llm_call") if is_sync else nullcontext()
        with watched_pause(self.plan.settings.name), named:
            yield

    def result(self, state: dict[str, Any]) -> Any:
        """Return the output in the graph's final state, or raise the error of the call."""
        name = self.plan.settings.name
        check_identity(name, loop_of(state)["identity"], self._identity)
        if state["status"] not in WITH_OUTPUT:
            raise ended_error(self.plan.settings, state, loop_of(state)["stopped"])
        if self.plan.validator is not None and state["status"] == "succeeded":
            return self.plan.validator.rebuild(state["output"])
        return restore_value(state.get("output"), state[LOOP]["output_types"])


class RunningTask(Protocol):
    """A LangGraph task that runs.

    `is_sent` tells whether a `Send` made it. The code that makes its calls may keep in `requests`
    what it asked at which place, for as long as the task runs.
    """

    is_sent: bool
    requests: dict[str, dict[str, Any]]


def running_task() -> RunningTask | None:
    """Return the running LangGraph task; None outside any thread.

    Example:
        >>> running_task() is None
        True
    """
    try:
        return execution_in(get_config().get("configurable", {}))
    except RuntimeError:  # No graph runs.
        return None
