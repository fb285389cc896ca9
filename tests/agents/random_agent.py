"""An agent drawn at random, run with and without `RetryMiddleware`, and what its people answer.

The model plans by the conversation alone: it calls several tools at once, for some turns. Each tool
call fails at its first try or never, by its arguments: it raises, or it reports an error. Other
middleware, in random order, looks at the requests, makes several calls for one answer, changes the
prompt, falls back, limits, or has tools of its own. Nodes crash after finished calls, and each
answer is applied by a new agent on what is saved.
"""

import asyncio
import random
from collections import Counter
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ContextEditingMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    dynamic_prompt,
)
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_stream_writer
from langgraph.store.memory import InMemoryStore

import graph_retry
from graph_retry import approve, edit, reject, respond
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import MODES, ScriptedChat, approvals, asking

_FAR: Any = ("tokens", 10**6)


class Looking(AgentMiddleware[Any, Any, Any]):
    """Middleware of a user's own: it sees requests and results, and changes nothing."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def name(self) -> str:
        """A name of its own, because an agent may have several."""
        return self._name

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Pass the call on."""
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Pass the call on."""
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        return await handler(request)


class Noting(Looking):
    """Middleware that writes into the state before and after each model call."""

    def before_model(self, state: Any, runtime: Any) -> Any:
        """Write nothing new."""
        return {"messages": []}

    def after_model(self, state: Any, runtime: Any) -> Any:
        """Write the last message again, under its id."""
        return {"messages": [state["messages"][-1]]}


class Twice(Looking):
    """Middleware that asks a second time with another setting, and takes the second answer."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Call twice."""
        handler(request)
        return handler(request.override(model_settings={"seed": 2}))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        await handler(request)
        return await handler(request.override(model_settings={"seed": 2}))


class Drawn:
    """One agent, drawn by a seed, with the counts of what it did."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.turns = self.draw.randint(1, 3)
        self.width = self.draw.randint(1, 4)
        self.is_async = self.draw.random() < 0.5
        self.broken = self.draw.random() < 0.3
        self.failing = {
            self.key(turn, at): self.draw.choice(["raise", "report"])
            for turn in range(self.turns)
            for at in range(self.width)
            if self.draw.random() < 0.4
        }
        self.kinds = self.draw.sample(list(self._makers()), self.draw.randint(3, 6))
        if {"approvals", "approvals of each"} <= {*self.kinds}:  # Their names are the same.
            self.kinds.remove("approvals")
        self.position = self.draw.randint(0, len(self.kinds))
        self.runs: Counter[str] = Counter()
        self.seen: dict[str, Any] = {}
        self.model_calls = 0
        self.crashes = self.draw.randint(0, 3)
        self.is_wrapped = True

    @property
    def asks_before(self) -> bool:
        """Whether LangChain's own middleware asks, so that a call may end without its tool."""
        return any(kind.startswith("approvals") for kind in self.kinds)

    @staticmethod
    def key(turn: int, at: int) -> str:
        """Name a tool call."""
        return f"{turn}.{at}"

    def _makers(self) -> dict[str, tuple[str, Any]]:
        """Return middleware by name, with the side of ours on which it must be."""
        fallback = ScriptedChat(answer=self.answer, model_name="fallback")
        return {
            "looking": ("any", lambda: Looking("one")),
            "also looking": ("any", lambda: Looking("two")),
            "twice": ("before", lambda: Twice("twice")),
            "prompt": ("before", lambda: dynamic_prompt(lambda _: "Be kind.")),
            "todo": ("before", TodoListMiddleware),
            "limit": ("any", lambda: ModelCallLimitMiddleware(run_limit=90)),
            "tool limit": ("any", lambda: ToolCallLimitMiddleware(run_limit=90)),
            "fallback": ("after", lambda: ModelFallbackMiddleware(fallback)),
            "retry": ("after", lambda: ModelRetryMiddleware(max_retries=1, on_failure="error")),
            "mail": ("any", lambda: PIIMiddleware("email")),
            "context": ("before", ContextEditingMiddleware),
            "summary": (
                "any",
                lambda: SummarizationMiddleware(fallback, trigger=("tokens", 10**6)),
            ),
            "noting": ("any", lambda: Noting("noting")),
            "approvals": ("before", lambda: self._human(MODES[0])),
            "approvals of each": ("before", lambda: self._human(MODES[-1])),
        }

    def _human(self, how: Any) -> Any:
        """Return LangChain's own approvals for one of the tools; nobody is asked without us."""
        asks: dict[str, Any] = {"tool0": True} if self.is_wrapped else {}
        return approvals(asks, how)

    def answer(self, messages: Any) -> Any:
        """Answer by the conversation alone."""
        self.model_calls += 1
        turn = sum(isinstance(each, AIMessage) for each in messages)
        if turn >= self.turns:
            said = [each for each in messages if isinstance(each, ToolMessage)]
            return " | ".join(str(each.content).split("Tool response:\n")[-1] for each in said)
        calls = [
            {
                "name": f"tool{at % 2}",
                "args": {"about": self.key(turn, at)},
                "id": self.key(turn, at),
            }
            for at in range(self.width)
        ]
        if self.broken and self.is_wrapped and len(calls) > 1:
            last = calls.pop()
            text = f'{{"about": "{last["args"]["about"]}",}}'
            return asking(*calls, broken=[{**last, "args": text}])
        return asking(*calls)

    def use(self, about: str, runtime: ToolRuntime) -> Any:
        """Use a tool: note what it sees, and fail at the first try if that was drawn."""
        self.runs[about] += 1
        config = get_config()
        configurable: Any = config["configurable"]
        read = next(value for key, value in configurable.items() if key.endswith("pregel_read"))
        messages = read("messages", True)
        get_stream_writer()({"about": about})
        self.seen[about.removesuffix("!")] = (
            [each.id for each in messages if isinstance(each, AIMessage)] and len(messages),
            config["metadata"]["langgraph_node"],
            config["recursion_limit"],
            runtime.context,
            type(runtime.store).__name__,
            len(runtime.state["messages"]),
            configurable["thread_id"],
        )
        how = self.failing.get(about) if self.is_wrapped else None
        if how == "raise":
            raise LookupError(f"nothing about {about}")
        if how == "report":
            call_id = str(runtime.tool_call_id)
            return ToolMessage(f"nothing about {about}", tool_call_id=call_id, status="error")
        return f"about {about}"

    def agent(self, saver: Any) -> Any:
        """Compile the agent, with `RetryMiddleware` or without, as after a new start."""

        def use(about: str, runtime: ToolRuntime) -> Any:
            """Use it."""
            return self.use(about, runtime)

        async def ause(about: str, runtime: ToolRuntime) -> Any:
            """Use it."""
            return self.use(about, runtime)

        tools = [
            StructuredTool.from_function(coroutine=ause, name=f"tool{at}")
            if self.is_async
            else StructuredTool.from_function(use, coroutine=ause, name=f"tool{at}")
            for at in range(2)
        ]
        makers = self._makers()
        ours: list[Any] = [RetryMiddleware(tools=True)] if self.is_wrapped else []
        crashing = [Crashing(self)] if self.is_wrapped else []
        sides: dict[str, list[Any]] = {"before": crashing, "after": []}
        for at, kind in enumerate(self.kinds):
            side, make = makers[kind]
            sides[("before" if at < self.position else "after") if side == "any" else side].append(
                make()
            )
        return create_agent(
            ScriptedChat(answer=self.answer),
            tools,
            middleware=[*sides["before"], *ours, *sides["after"]],
            checkpointer=saver,
            store=InMemoryStore(),
        )

    def decision(self, review: Any) -> tuple[Any, str]:
        """Draw an answer; return it, and the result that the model must get."""
        about = review.params["about"]
        kind = self.draw.choice(["edit", "edit", "respond", "reject", "approve"])
        if kind == "respond":
            return respond(f"by hand {about}"), f"by hand {about}"
        if kind == "reject":
            told = f"The call of `{review.function_name}` failed, and a person stopped it"
            return reject(f"not {about}"), f"{told}: not {about}."
        if kind == "approve":
            self.failing.pop(about)  # The second try is fine.
            return approve(), f"about {about}"
        return edit(about=f"{about}!"), f"about {about}!"

    def approval(self, review: Any) -> tuple[Any, dict[str, str]]:
        """Draw an answer to a question of LangChain's; return it, and the results it decides."""
        calls = review.params if "about" not in review.params else {"": review.params}
        is_each = "approvals of each" in self.kinds
        made: dict[str, Any] = {}
        results: dict[str, str] = {}
        for key, args in calls.items():
            about = args["about"]
            kind = self.draw.choice(["approve", "edit", "reject", "respond"][: 4 if is_each else 2])
            made[key] = {"type": kind}
            if kind == "edit":
                made[key]["args"] = {"about": f"{about}!"}
                results[about] = f"about {about}!"
            elif kind == "reject":
                made[key]["message"] = f"not {about}"
                told = f"User rejected the tool call for `{review.function_name}` with reason: "
                results[about] = f"{told}not {about}"
            elif kind == "respond":
                made[key]["message"] = results[about] = f"by hand {about}"
        if "" not in made:
            return respond(made), results
        (one,) = made.values()
        kind, message = one["type"], one.get("message", "")
        if kind == "edit":
            return edit(**one["args"]), results
        answers = {"reject": reject(message), "respond": respond(message), "approve": approve()}
        return answers[kind], results

    async def call(self, owner: Any, name: str, *args: Any, **more: Any) -> Any:
        """Call a method or its async twin, and continue a run whose node crashed."""
        try:
            if self.is_async:
                return await getattr(owner, f"a{name}")(*args, **more)
            return await asyncio.to_thread(getattr(owner, name), *args, **more)
        except ConnectionError:
            graph, config = (owner, args[1]) if name == "invoke" else args[:2]
            return await self.call(graph, "invoke", None, config)


class Crashing(Looking):
    """Middleware that fails once, after a call behind it has finished."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__("crashing")
        self._drawn = drawn

    def _crash(self) -> None:
        if self._drawn.crashes and self._drawn.draw.random() < 0.4:
            self._drawn.crashes -= 1
            raise ConnectionError("the node ended")

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Fail after the model's call."""
        made = handler(request)
        self._crash()
        return made

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        made = await handler(request)
        self._crash()
        return made

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Fail after the tool's call, unless a call beside it may still be under way."""
        made = handler(request)
        if not self._drawn.asks_before:
            self._crash()
        return made

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        made = await handler(request)
        if not self._drawn.asks_before:
            self._crash()
        return made


async def outcome(seed: int) -> list[str]:
    """Run one drawn agent twice; return what is wrong with the wrapped one."""
    plain = Drawn(seed)
    plain.is_wrapped = False
    given: Any = {"messages": [("user", "go")]}
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 70}
    await plain.call(plain.agent(InMemorySaver()), "invoke", given, config)
    drawn, saver = Drawn(seed), InMemorySaver()
    state = await drawn.call(drawn.agent(saver), "invoke", given, config)
    wanted: dict[str, str] = {}
    agent = drawn.agent(saver)
    while waiting := await drawn.call(graph_retry, "pending_reviews", agent, config):
        chosen = drawn.draw.sample(waiting, drawn.draw.randint(1, len(waiting)))
        answers: dict[str, Any] = {}
        for review in chosen:
            if review.error.startswith("ApprovalNeeded"):
                answers[review.review_id], results = drawn.approval(review)
                wanted |= results
                continue
            about = review.params["about"]
            if about in wanted:
                return [f"{about} is asked again: {review.error}"]
            answers[review.review_id], wanted[about] = drawn.decision(review)
        agent = drawn.agent(saver)  # A new process knows only what is saved.
        state = await drawn.call(graph_retry, "resume", agent, config, answers=answers)
    return [*_wrong(drawn, plain, state, wanted)]


def _wrong(drawn: Drawn, plain: Drawn, state: Any, wanted: dict[str, str]) -> Any:
    """Yield what is misplaced, repeated, missing, or seen otherwise."""
    said = {
        each.tool_call_id: str(each.content).split("Tool response:\n")[-1]
        for each in state["messages"]
        if isinstance(each, ToolMessage)
    }
    for turn in range(drawn.turns):
        for at in range(drawn.width):
            key = drawn.key(turn, at)
            right = wanted.get(key, f"about {key}")
            if said.get(key) != right:
                yield f"{key}: {said.get(key)!r} in place of {right!r}"
    repeated = {key: n for key, n in drawn.runs.items() if n > 2 or (key not in wanted and n > 1)}
    if repeated:
        yield f"repeated: {repeated}"
    for key, seen in drawn.seen.items():
        if seen != plain.seen.get(key):
            yield f"{key} sees {seen} in place of {plain.seen.get(key)}"
    if drawn.model_calls != plain.model_calls:
        yield f"{drawn.model_calls} model calls in place of {plain.model_calls}"
