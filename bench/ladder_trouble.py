"""The second mix: tasks that fail in other ways than by malformed text, and the ready hooks.

One task in five goes wrong until something is done: the model refuses until another one is asked,
a request meets HTTP 429 or 503 once, a long conversation does not fit the model's window, an answer
is cut off at `max_tokens`, or a field is missing. Each has an equal share.
"""

import random
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from langgraph.types import RetryPolicy

from bench.ladder_model import (
    KINDS,
    SCHEMA,
    Answer,
    Booking,
    RefusedRequestError,
    ScriptedModel,
    Task,
    corrected,
    make_tasks,
)
from bench.ladder_rivals import RETRIES, Make, Run, chat
from bench.repair_documents import dump
from graph_retry import AttemptsExhausted, create_retry_node
from graph_retry.hooks import fall_back, raise_limit, shorten_history

WINDOW = 20_000
"""Characters that the model takes."""
FIRST_LIMIT = 256
"""Tokens that an answer may have where the request says nothing."""

TROUBLES = ("refusal", "429", "503", "overflow", "truncated", "missing field")


@dataclass(frozen=True)
class TalkTask(Task):
    """A task at the end of a conversation, which is long where it overflows."""

    def prompt(self, instructions: str = "") -> str:
        """Write the conversation as one text."""
        return "\n".join(turn["content"] for turn in self.turns(instructions))

    def turns(self, instructions: str = "") -> list[dict[str, str]]:
        """Write the conversation; the document comes last."""
        count = 40 if self.kind == "overflow" else 2
        said = [
            {"role": ("user", "assistant")[number % 2], "content": f"Small talk {number}. " * 40}
            for number in range(count)
        ]
        return [*said, {"role": "user", "content": super().prompt(instructions)}]


def make_talk(count: int, seed: int) -> list[TalkTask]:
    """Make the tasks, with exactly the stated share of each kind."""
    troubles = 0
    made: list[TalkTask] = []
    for task in make_tasks(count, seed):
        kind = task.kind
        if kind != "clean":
            kind, troubles = TROUBLES[troubles % len(TROUBLES)], troubles + 1
        made.append(TalkTask(task.number, task.truth, kind))
    return made


class TroubledModel(ScriptedModel):
    """The scripted model with an API that refuses and limits requests."""

    def __call__(
        self, prompt: str, *, unseen: int = 0, asked: dict[str, Any] | None = None
    ) -> Answer:
        """Answer a prompt; one without a document asks for a summary of the talk before it."""
        if "[document " in prompt:
            return super().__call__(prompt, unseen=unseen, asked=asked)
        self.calls += 1
        self.sent += len(prompt) + unseen
        return Answer("Small talk.")

    def answer(self, task: Task, prompt: str, said: list[Answer], asked: dict[str, Any]) -> Answer:
        """Answer, or refuse the request."""
        limit = asked.get("max_completion_tokens") or asked.get("max_tokens") or FIRST_LIMIT
        if len(prompt) > WINDOW:
            what = "This model's maximum context length is 5000 tokens."
            raise RefusedRequestError(400, what, "context_length_exceeded")
        if task.kind in ("429", "503") and not said:
            said.append(Answer(""))
            raise RefusedRequestError(int(task.kind), "Try again.", None)
        if task.kind == "refusal" and asked.get("model") != "second":
            return Answer("", refusal="I'm sorry, I can't help with that.")
        rng = random.Random(f"{task.number} {len(said)}")
        if task.kind == "truncated":
            text = dump(rng, task.truth)
            return Answer(text) if limit > FIRST_LIMIT else Answer(text[: len(text) // 2], "length")
        if task.kind == "missing field":
            return (
                KINDS[task.kind].spoil(rng, task.truth)
                if not said
                else corrected(rng, task, prompt, said)
            )
        return Answer(dump(rng, task.truth))


HOOKS = [
    shorten_history(),
    fall_back("refusal", {"model": "second"}),
]
OPTIONS: dict[str, Any] = {
    "review": False,
    "feedback": "errors_only",
    "auto_retries": RETRIES,
    "transient": RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False),
}


def ours(tools: bool) -> Make:
    """Use the node form with LangChain's client; the params have what the hooks change."""

    def make(url: str) -> Run:
        client = chat(url)
        model = client.bind_tools([Booking], tool_choice="Booking") if tools else client

        def call(params: dict[str, Any]) -> Any:
            given = {"model": params["model"], "max_tokens": params["max_tokens"]}
            return model.bind(**given).invoke(params["messages"])

        hooks = [*HOOKS, raise_limit(most=4_096)]
        node = create_retry_node(call, dict, hooks, output=Booking, **OPTIONS)

        def run(task: Task) -> Any:
            turns = task.turns("" if tools else SCHEMA)
            params = {"messages": turns, "model": "scripted", "max_tokens": FIRST_LIMIT}
            return node.invoke({"params": params})["output"]

        return run

    return make


def reviewed_agent(url: str) -> Run:
    """Use `create_agent` with this library's middleware."""
    agents, formats = import_module("langchain.agents"), "langchain.agents.structured_output"
    second = chat(url, "second")

    def more(settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "max_tokens": 2 * settings.get("max_tokens", FIRST_LIMIT)}

    hooks = [*HOOKS, fall_back("truncated", *[{"settings": more}] * RETRIES)]
    retry = import_module("graph_retry.agents").RetryMiddleware(
        hooks, models={"second": second}, messages=100, **OPTIONS
    )
    made = agents.create_agent(
        chat(url),
        response_format=import_module(formats).ToolStrategy(Booking),
        middleware=[retry],
    )

    def run(task: Task) -> Any:
        with suppress(AttemptsExhausted):
            return made.invoke({"messages": task.turns()})["structured_response"]
        return None

    return run


def equipped_agent(url: str) -> Run:
    """Use `create_agent` with LangChain's own middleware for each trouble that it has one for."""
    agents, means = import_module("langchain.agents"), "langchain.agents.middleware"
    middleware = import_module(means)
    made = agents.create_agent(
        chat(url),
        response_format=import_module("langchain.agents.structured_output").ToolStrategy(Booking),
        middleware=[
            middleware.SummarizationMiddleware(
                model=chat(url), trigger=("tokens", WINDOW // 5), keep=("messages", 5)
            ),
            middleware.ModelFallbackMiddleware(chat(url, "second")),
            middleware.ModelRetryMiddleware(max_retries=RETRIES, initial_delay=0),
            middleware.ModelCallLimitMiddleware(run_limit=RETRIES + 1),
        ],
    )

    def run(task: Task) -> Any:
        return made.invoke({"messages": task.turns()}).get("structured_response")

    return run


def equipped_pydantic_ai(url: str) -> Run:
    """Use pydantic-ai with its `FallbackModel` and a history processor, as its docs show them."""
    library, messages = import_module("pydantic_ai"), import_module("pydantic_ai.messages")
    provider = import_module("pydantic_ai.providers.openai").OpenAIProvider
    model = import_module("pydantic_ai.models.openai").OpenAIChatModel
    fallback = import_module("pydantic_ai.models.fallback").FallbackModel
    access = provider(base_url=url, api_key="none")

    unavailable = import_module("pydantic_ai.exceptions").ModelAPIError

    def recent(history: list[Any]) -> list[Any]:
        return history[-5:] if len(history) > 5 else history

    def refused(response: Any) -> bool:
        return bool(response.finish_reason == "content_filter")

    # The library tells by the annotation that the function looks at a response.
    refused.__annotations__["response"] = messages.ModelResponse
    models = [model(name, provider=access) for name in ("scripted", "second")]
    made = library.Agent(
        fallback(*models, fallback_on=[unavailable, refused]),
        output_type=library.ToolOutput(Booking),
        retries=RETRIES,
        capabilities=[import_module("pydantic_ai.capabilities").ProcessHistory(recent)],
    )
    kinds = {
        "user": lambda text: messages.ModelRequest([messages.UserPromptPart(text)]),
        "assistant": lambda text: messages.ModelResponse([messages.TextPart(text)]),
    }

    def run(task: Task) -> Any:
        *earlier, last = task.turns()
        history = [kinds[turn["role"]](turn["content"]) for turn in earlier]
        return made.run_sync(last["content"], message_history=history).output

    return run


EQUIPPED: dict[str, tuple[str, Make]] = {
    "create_agent, ToolStrategy, Summarization, ModelFallback, ModelRetry": (
        "langchain",
        equipped_agent,
    ),
    "pydantic-ai, ToolOutput, FallbackModel, recent history": (
        "pydantic-ai-slim",
        equipped_pydantic_ai,
    ),
}
"""Others with their own means against these troubles, with the package each comes from."""

LANES: dict[str, Make] = {
    "graph-retry, text": ours(tools=False),
    "graph-retry, tool call": ours(tools=True),
    "graph-retry, RetryMiddleware": reviewed_agent,
}
