"""What the graphs here share: a chat thread around one retry node, and real models by name.

A model is named like `small` (a script that needs no key), like `openai:gpt-4.1-mini` (a real one,
through LangChain's `init_chat_model`), or like `local:NAME` (one at `OPENAI_BASE_URL`).
"""

import importlib
import json
import os
import urllib.request
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import Attempt

ParamsT = TypeVar("ParamsT", bound=BaseModel)


class NoModelError(Exception):
    """A chat model cannot be made. The message says what to do."""


def is_real(model: str) -> bool:
    """Say whether a name is that of a provider's model, not of a scripted one."""
    return ":" in model


def chat_model(name: str, temperature: float = 1.0) -> Any:
    """Make a real chat model from a name such as `openai:gpt-4.1-mini`.

    Raises:
        NoModelError: If a package or the key is missing.
    """
    provider, _, of_provider = name.partition(":")
    if provider == "local":

        def ask(text: str) -> dict[str, Any]:
            return _completion(of_provider, temperature, text)

        return RunnableLambda(ask)
    try:
        chat_models: Any = importlib.import_module("langchain.chat_models")
    except ImportError:
        msg = (
            f"The model {name!r} needs LangChain: "
            f".venv/bin/pip install langchain langchain-{provider}"
        )
        raise NoModelError(msg) from None
    try:
        return chat_models.init_chat_model(name, temperature=temperature)
    except Exception as error:  # noqa: BLE001 (each provider has an error of its own)
        msg = (
            f"The model {name!r} cannot be used: {error}\n"
            f"Is langchain-{provider} installed, and {provider.upper()}_API_KEY set?"
        )
        raise NoModelError(msg) from None


def _completion(model: str, temperature: float, text: str) -> dict[str, Any]:
    """Call a server with OpenAI's API, such as llama.cpp, vLLM or Ollama."""
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8095/v1")
    asked = {"messages": [{"role": "user", "content": text}], "temperature": temperature}
    body = json.dumps({"model": model, "max_tokens": 400, **asked}).encode()
    key = os.environ.get("OPENAI_API_KEY", "none")
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{url}/chat/completions", body, headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as response:  # noqa: S310
        answer: dict[str, Any] = json.load(response)
    return answer


class Messages(TypedDict, total=False):
    """The input from a chat client. Each graph adds its own type of `params` for the forms."""

    messages: Annotated[list[AnyMessage], add_messages]


class State(Messages):
    """The messages of a chat, and the state keys of a retry node, as plain JSON."""

    params: dict[str, Any]
    output: Any
    status: str
    attempts: list[Attempt]


def around(
    name: str,
    node: Any,
    given: type[Messages],
    take: Callable[[Any, Sequence[AnyMessage]], BaseModel],
    tell: Callable[[Any], Any],
) -> StateGraph[Any, Any, Any, Any]:
    """Put a chat around a retry node: `prepare`, the node, `report`.

    Args:
        name: The name of the node.
        node: The retry node, or a function of the state that runs one.
        given: The input type. Its `params` is the params model.
        take: A function that puts the chat's last message, from a person, into the params.
        tell: A function that turns the output into the content of the answer.
    """
    params_type: type[BaseModel] = given.__annotations__["params"]

    def prepare(state: State) -> dict[str, Any]:
        """Fill in the default params, and put a new message into them."""
        params = params_type.model_validate(state.get("params") or {})
        messages = state.get("messages") or []
        if not messages or not isinstance(messages[-1], HumanMessage):
            return {"params": params.model_dump(mode="json")}
        # A new message is a new call: it does not go on after the attempts of the last one.
        return {"params": take(params, messages).model_dump(mode="json"), "attempts": []}

    def report(state: State) -> dict[str, Any]:
        """Add a message about the outcome to the chat."""
        if state["status"] == "succeeded":
            return {"messages": [AIMessage(tell(state["output"]))]}
        reason = (state["attempts"][-1]["decision"] or {}).get("message") or "no reason given"
        return {"messages": [AIMessage(f"`{name}` ended {state['status']}: {reason}")]}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State, input_schema=given)
    builder.add_node("prepare", prepare)
    builder.add_node(name, node)
    builder.add_node("report", report)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", name)
    builder.add_edge(name, "report")
    return builder
