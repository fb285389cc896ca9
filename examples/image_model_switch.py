"""Image generation that changes to another model by itself when the first one is exhausted.

The hook's params are used without asking (`auto_retries=1`). If they do not help either, a person
is asked.
"""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import Attempt, AttemptFailed, create_retry_node


class ImageParams(BaseModel):
    """Whatever a person might want to tweak about the picture."""

    prompt: str
    model: str = "imagen-3.0"
    seed: int = 12345
    mime_type: str = "image/png"


class State(TypedDict, total=False):
    """The graph's state."""

    params: dict[str, Any]
    output: Any
    status: str
    attempts: list[Attempt]


def generate_image(params: ImageParams) -> dict[str, Any]:
    """Stand in for an image API whose older model has no capacity left."""
    if params.model == "imagen-3.0":
        raise RuntimeError("429 Resource exhausted")
    return {"model": params.model, "seed": params.seed, "bytes": 1024}


def switch_model(error: AttemptFailed, attempt: int, params: ImageParams) -> ImageParams | None:
    """Return new params, never the changed old ones; None leaves the decision to others."""
    del attempt
    if "Resource exhausted" in str(error):
        return params.model_copy(update={"model": "imagen-4.0"})
    return None


node = create_retry_node(generate_image, ImageParams, switch_model, auto_retries=1)
builder = StateGraph(State).add_node("draw", node).set_entry_point("draw")
graph = builder.compile(checkpointer=InMemorySaver())

config: Any = {"configurable": {"thread_id": "1"}}
state = graph.invoke({"params": {"prompt": "a lighthouse at dusk"}}, config)
print("picture:", state["output"])
# expect: picture: {'model': 'imagen-4.0', 'seed': 12345, 'bytes': 1024}

for attempt in state["attempts"]:
    print(attempt["number"], attempt["status"], attempt["author"])
# expect: 1 failed caller
# expect: 2 succeeded hook:switch_model
