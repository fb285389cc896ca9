"""Usages that type checkers must accept, with the types they must find; never run."""

from collections.abc import Awaitable
from typing import Any, assert_type

from pydantic import BaseModel

from graph_retry import (
    AttemptContext,
    AttemptFailed,
    Completion,
    aretry_llm_call,
    create_retry_node,
    gather_calls,
    retry_llm_call,
)


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


def sync_usages() -> None:
    """Check the function form."""
    assert_type(retry_llm_call(ask, P(prompt=""), output=Person), Person)
    assert_type(retry_llm_call(ask, P(prompt="")), str)
    assert_type(retry_llm_call(ask_in_context, P(prompt="")), int)
    assert_type(retry_llm_call(ask, P(prompt=""), revise, output=Person, auto_retries=2), Person)
    assert_type(retry_llm_call(ask, P(prompt=""), [revise], output=list[Person]), list[Person])
    assert_type(retry_llm_call(ask, P(prompt=""), output={"type": "object"}), Any)
    assert_type(retry_llm_call(lambda: 3, None), int)


async def async_usages() -> None:
    """Check the async function form."""
    assert_type(await aretry_llm_call(aask, P(prompt=""), arevise, output=Person), Person)
    assert_type(await aretry_llm_call(aask, P(prompt="")), Completion)
    assert_type(await aretry_llm_call(ask, P(prompt="")), str)
    calls: list[Awaitable[Person]] = [aretry_llm_call(aask, P(prompt=""), output=Person)]
    assert_type(await gather_calls(*calls), list[Person])


def refused_usages() -> None:
    """Check that mistakes are found."""
    retry_llm_call(ask, P(prompt=""), max_attemps=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    create_retry_node(ask, P, max_attempts="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
