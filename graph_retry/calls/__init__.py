"""Build your own forms of a retried call, such as an agent's tool or a step of a framework.

`Call` runs your function with retries and reviews. `JsonParams` holds the params of a call as JSON,
with your own JSON Schema. `Terms` judges recorded attempts again, for example by another output
type.
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
"""The name of the call that has paused in the current run of a node, or None.

LangGraph runs each node in its own context, so each run of a node has its own value.
"""


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let the interrupt of a call pass, and refuse later calls of a node that catches it.

    A call waits for a person by raising LangGraph's `GraphInterrupt`. If user code catches this
    exception, the node continues by mistake, and its next call raises `PauseSwallowed`. The error
    is also logged, because the user code may catch it, too. `PauseSwallowed` is an `Exception`,
    because a LangGraph server never ends a run that raises a `BaseException`.

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
            f"`{name}` waits for a person, and this exception pauses the run: let it pass. If "
            "an `asyncio.TaskGroup` raised it, await the calls with `gather_calls` instead."
        )
        raise passing from None


class Call:
    """A call of your function with retries and reviews, such as a step of another framework.

    Inside a LangGraph node, a call that needs a person pauses the run. When the node runs again,
    the call continues from its saved attempts. These are the attempts of the call with the same
    LangGraph task, name and first params. The option `key` takes the place of the first params.

    Args:
        llm_call: The function to call with the params.
        params: The first params.
        on_retry: Hooks, as in `retry_llm_call`.
        output: The wanted output, as in `retry_llm_call`.
        options: See `RetryOptions`.
        codec: Converts the params to the JSON that a person edits, such as a `JsonParams` (default:
            a codec for the class of the params).

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
        """Check the arguments. Only `invoke` and `ainvoke` make the call."""
        settings = settle(name_of(llm_call, "llm_call"), "function", options or {}, output)
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
        """Mark `llm_call` as a whole LangGraph node that is reviewed, and return this call.

        `accepts` checks the outputs that people write.
        """
        self.plan = replace(self.plan, accepts=accepts, is_node=True)
        self.config["configurable"] = {CALL: self.plan}
        return self

    def invoke(self) -> tuple[Any, list[Attempt]]:
        """Make the call. Return its output and the list of its attempts."""
        with self.watched(is_sync=True):
            state = self.graph.invoke(self.inputs, self.config)
        return self.result(state), state["attempts"]

    async def ainvoke(self) -> tuple[Any, list[Attempt]]:
        """Do the same as `invoke`, in async code."""
        with self.watched(is_sync=False):
            state = await self.graph.ainvoke(self.inputs, self.config)
        return self.result(state), state["attempts"]

    @contextmanager
    def watched(self, *, is_sync: bool) -> Generator[None, None, None]:
        """Let the interrupt of a waiting call pass, if the call's `graph` runs in the `with` block.

        If an earlier call of the node has paused, `PauseSwallowed` is raised. If sync code needs an
        async function or checkpointer, the error names `aretry_llm_call`.
        """
        named = naming_twin("aretry_llm_call") if is_sync else nullcontext()
        with watched_pause(self.plan.settings.name), named:
            yield

    def result(self, state: dict[str, Any]) -> Any:
        """Return the call's output, or raise its error. `state` is the final state of `graph`."""
        name = self.plan.settings.name
        check_identity(name, loop_of(state)["identity"], self._identity)
        if state["status"] not in WITH_OUTPUT:
            raise ended_error(self.plan.settings, state, loop_of(state)["stopped"])
        last: Attempt = state["attempts"][-1]
        by_person = last["decision"] is not None and last["decision"]["type"] == "respond"
        validator = self.plan.of_people if by_person else self.plan.validator
        if validator is not None and state["status"] == "succeeded":
            return validator.rebuild(state["output"])
        return restore_value(state.get("output"), state[LOOP]["output_types"])


class RunningTask(Protocol):
    """A LangGraph task (one run of a node) that is running now.

    is_sent: Whether a `Send` created the task.
    requests: A dict with the ids of last messages, and for each id the first request that an agent
        made after this message. The dict lasts as long as the task.
    """

    is_sent: bool
    requests: dict[str, dict[str, Any]]


def running_task() -> RunningTask | None:
    """Return the LangGraph task that is running now; None outside of a run on a thread.

    Example:
        >>> running_task() is None
        True
    """
    try:
        return execution_in(get_config().get("configurable", {}))
    except RuntimeError:  # No graph runs.
        return None
