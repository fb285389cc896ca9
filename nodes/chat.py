"""Answer a chat message, with a model that is short of capacity. Chat: send anything.

The scripted model `small` refuses the first attempt (rate limit) and the second (overload), so
approving twice is enough; `large` answers at once, but wants to be told what to be: it says
nothing without `params.system`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from graph_retry import AttemptContext, AttemptFailed, Completion, create_retry_node
from nodes.serving import Messages, around, chat_model, is_real


class Turn(TypedDict):
    """One earlier message."""

    role: Literal["user", "assistant"]
    content: str


class ChatParams(BaseModel):
    """All params of the completion that a person might want to change."""

    system: str = Field(default="You are brief.", description="What the model is to be")
    message: str = Field(
        default="Hello!", description="What to answer; a chat message takes its place"
    )
    history: list[Turn] = Field(
        default_factory=list[Turn], description="The chat before that message, oldest first"
    )
    model: str = Field(
        default="small",
        description="`small` or `large` (scripted), or a real one such as `openai:gpt-4.1-mini`",
    )
    temperature: float = Field(default=1.0, ge=0, le=2, description="How freely the model chooses")


class Input(Messages, total=False):
    """A message, or params, or both."""

    params: ChatParams


class RateLimitError(RuntimeError):
    """The error of a provider that got too many requests in a minute."""

    status_code = 429


class OverloadedError(RuntimeError):
    """The error of a provider that is overloaded."""

    status_code = 529


def ask_script(params: ChatParams, context: AttemptContext) -> Completion:
    """Answer like a model would. The answer depends only on the params and the attempt."""
    if params.model not in ("small", "large"):
        msg = f"unknown model {params.model!r}: there are 'small' and 'large'"
        raise ValueError(msg)
    if params.model == "small" and context.attempt == 1:
        msg = "rate limit of model 'small' reached: try again, or use 'large'"
        raise RateLimitError(msg)
    if params.model == "small" and context.attempt == 2:
        msg = "model 'small' is overloaded: try again, or use 'large'"
        raise OverloadedError(msg)
    said = f"You wrote: {params.message} ({len(params.history)} messages came before.)"
    text = said if params.model == "small" or params.system else ""
    words = len(params.message.split()), len(text.split())
    usage = {"input_tokens": words[0], "output_tokens": words[1], "total_tokens": sum(words)}
    return Completion(text, usage, "stop")


def ask(params: ChatParams, context: AttemptContext) -> Any:
    """Ask the scripted model, or a real model if the name contains a provider."""
    if not is_real(params.model):
        return ask_script(params, context)
    system = [{"role": "system", "content": params.system}] if params.system else []
    said = [*system, *params.history, {"role": "user", "content": params.message}]
    return chat_model(params.model, params.temperature).invoke(said)


def change_model(error: AttemptFailed, attempt: int, params: ChatParams) -> ChatParams | None:
    """Propose the other scripted model when the first one has failed twice."""
    if error.kind == "transient" and attempt > 1 and params.model == "small":
        return params.model_copy(update={"model": "large"})
    return None


def take(params: ChatParams, messages: Sequence[AnyMessage]) -> ChatParams:
    """Put the last message into the params, with the earlier messages as the history."""
    history: list[Turn] = [
        {"role": "assistant" if isinstance(each, AIMessage) else "user", "content": str(each.text)}
        for each in messages[:-1]
    ]
    return params.model_copy(update={"message": str(messages[-1].text), "history": history})


node = create_retry_node(
    ask, ChatParams, change_model, output=Annotated[str, Field(min_length=1)], name="chat"
)
graph = around("chat", node, Input, take, str).compile()
