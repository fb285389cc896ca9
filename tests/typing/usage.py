"""Usages that type checkers must accept, with the types they must find; never run."""

import functools
from collections.abc import Awaitable
from typing import Any, Literal, assert_type

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, JsonValue

from graph_retry import (
    AttemptContext,
    AttemptFailed,
    Completion,
    RetryOptions,
    approve,
    aretry_llm_call,
    create_retry_node,
    edit,
    gather_calls,
    resume,
    retry_llm_call,
)
from graph_retry._core.review.answers import DecisionType
from graph_retry.agents import RetryMiddleware
from graph_retry.hooks import escalate, feedback


class P(BaseModel):
    """Params."""

    prompt: str


class Person(BaseModel):
    """Output."""

    name: str


def ask(params: P) -> str:
    """Call a model."""
    return params.prompt


async def aask(params: P) -> Completion:
    """Call a model."""
    return Completion(params.prompt)


def ask_in_context(params: P, context: AttemptContext) -> int:
    """Call a model with a key."""
    return context.attempt + len(params.prompt)


def revise(error: AttemptFailed, attempt: int, params: P) -> P | None:
    """Revise params."""
    return params.model_copy(update={"prompt": f"{error} {attempt}"})


async def arevise(error: AttemptFailed, attempt: int, params: P) -> P | None:
    """Revise params, async."""
    return revise(error, attempt, params)


class Client:
    """A client whose methods are model calls and hooks, and which is one itself."""

    def ask(self, params: P) -> str:
        """Call a model."""
        return params.prompt

    def revise(self, error: AttemptFailed, attempt: int, params: P) -> P | None:
        """Revise params."""
        return revise(error, attempt, params)

    async def __call__(self, question: P, context: AttemptContext) -> str:
        """Call a model, with other names for the arguments."""
        return question.prompt + context.idempotency_key


def cut(error: Exception, number: int, old: BaseModel) -> None:
    """Revise nothing, with wider types and other names."""


def sync_usages() -> None:
    """Check the function form."""
    assert_type(retry_llm_call(ask, P(prompt=""), output=Person), Person)
    assert_type(retry_llm_call(ask, P(prompt="")), str)
    assert_type(retry_llm_call(ask_in_context, P(prompt="")), int)
    assert_type(retry_llm_call(ask, P(prompt=""), revise, output=Person, auto_retries=2), Person)
    assert_type(retry_llm_call(ask, P(prompt=""), [revise], output=list[Person]), list[Person])
    assert_type(retry_llm_call(ask, P(prompt=""), output={"type": "object"}), Any)
    union: Person | P = retry_llm_call(ask, P(prompt=""), output=Person | P)
    optional: Person | None = retry_llm_call(ask, P(prompt=""), output=Person | None)
    _ = (union, optional)
    assert_type(retry_llm_call(lambda _: 3, None), int)
    retry_llm_call(lambda params: params.prompt, P(prompt=""))
    assert_type(retry_llm_call(Client().ask, P(prompt=""), Client().revise), str)
    assert_type(retry_llm_call(functools.partial(ask), P(prompt="")), str)
    assert_type(retry_llm_call(ask, P(prompt=""), lambda error, attempt, params: None), str)
    assert_type(
        retry_llm_call(
            ask,
            P(prompt=""),
            lambda error, attempt, params: params.model_copy(update={"prompt": str(attempt)}),
        ),
        str,
    )
    assert_type(retry_llm_call(ask, P(prompt=""), [revise, cut, feedback()]), str)
    assert_type(retry_llm_call(ask, P(prompt=""), escalate({2: {"prompt": "?"}})), str)


def overruled_usages(words: list[DecisionType], options: RetryOptions) -> None:
    """Check that a result may be invalid JSON only where `accept` may be allowed."""
    p = P(prompt="")
    valid = retry_llm_call(ask, p, output=Person, allowed_decisions=["approve", "reject"])
    assert_type(valid, Person)
    either = retry_llm_call(ask, p, output=Person, allowed_decisions=["approve", "accept"])
    assert_type(either, Person | JsonValue)
    if isinstance(either, Person):
        assert_type(either.name, str)
    many = retry_llm_call(ask, p, output=list[Person], max_attempts=2, allowed_decisions=words)
    assert_type(many, list[Person] | JsonValue)
    assert_type(retry_llm_call(ask, p, output=Person, **options), Person | JsonValue)
    assert_type(retry_llm_call(ask, p, allowed_decisions=("approve", "accept")), str)
    wrong = ["approve"]
    retry_llm_call(ask, p, output=Person, allowed_decisions=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    retry_llm_call(ask, p, output=Person, allowed_decisions=["accep"])  # type: ignore[list-item]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def async_usages() -> None:
    """Check the async function form."""
    assert_type(await aretry_llm_call(aask, P(prompt=""), arevise, output=Person), Person)
    assert_type(await aretry_llm_call(aask, P(prompt="")), Completion)
    assert_type(await aretry_llm_call(ask, P(prompt="")), str)
    assert_type(await aretry_llm_call(Client(), P(prompt="")), str)
    assert_type(await aretry_llm_call(aask, P(prompt=""), [revise, arevise]), Completion)
    union: Person | P = await aretry_llm_call(aask, P(prompt=""), output=Person | P)
    _ = union
    calls: list[Awaitable[Person]] = [aretry_llm_call(aask, P(prompt=""), output=Person)]
    assert_type(await gather_calls(*calls), list[Person])
    either = await aretry_llm_call(aask, P(prompt=""), output=Person, allowed_decisions=["accept"])
    assert_type(either, Person | JsonValue)


def forms_of_output_and_lists_of_middleware(model: BaseChatModel) -> None:
    """Check that a special form is an output, and that our middleware stands beside LangChain's."""
    word: Literal["yes", "no"] = retry_llm_call(ask, P(prompt=""), output=Literal["yes", "no"])
    _ = word
    create_agent(model, middleware=[HumanInTheLoopMiddleware({}), RetryMiddleware()])  # pyright: ignore[reportUnknownMemberType]
    create_agent(model, middleware=[RetryMiddleware(tools=True), ToolRetryMiddleware()])  # pyright: ignore[reportUnknownMemberType]


def answers(graph: Any) -> None:
    """Check what a review may be answered with."""
    resume(graph, {}, approve())
    resume(graph, {}, {**edit(prompt="?"), "by": "ada"})
    resume(graph, {}, answers={"id": "approve", "other": [{"type": "accept", "args": None}]})


def refused_usages() -> None:
    """Check that mistakes are found."""
    retry_llm_call(ask, P(prompt=""), max_attemps=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    retry_llm_call(ask, P(prompt=""), output=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    retry_llm_call(ask, P(prompt=""), ask)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    create_retry_node(ask, P, max_attempts="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    resume(None, {}, approve)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    resume(None, {}, answers={"id": approve})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
