"""The node form between two ordinary nodes: its steps are visible, its ledger is in the state."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from graph_retry import Attempt, create_retry_node, edit, resume


class Rating(BaseModel):
    """What the model must give."""

    stars: int = Field(ge=1, le=5)


class RatingParams(BaseModel):
    """What a person may change."""

    review: str
    scale: str = "0 to 10"


class State(TypedDict):
    """The parent's state; the retry node reads `params`, writes `rating`, `status`, `attempts`."""

    review: str
    params: dict[str, Any]
    rating: dict[str, Any]
    status: str
    attempts: list[Attempt]
    report: str


def ask(params: RatingParams) -> str:
    """Stand in for a model that keeps to the scale it is given."""
    return '{"stars": 8}' if params.scale == "0 to 10" else '{"stars": 4}'


def prepare(state: State) -> dict[str, Any]:
    """Make the params."""
    return {"params": {"review": state["review"]}}


def report(state: State) -> dict[str, Any]:
    """Use the result, or what became of it."""
    if state["status"] != "succeeded":
        return {"report": f"no rating: {state['status']}"}
    return {"report": f"{state['rating']['stars']} stars after {len(state['attempts'])} attempts"}


builder = StateGraph(State).add_node("prepare", prepare).add_node("report", report)
builder.add_node(
    "rate", create_retry_node(ask, RatingParams, output=Rating, keys={"output": "rating"})
)
builder.set_entry_point("prepare").add_edge("prepare", "rate").add_edge("rate", "report")
graph: Any = builder.compile(checkpointer=InMemorySaver())

print("steps:", [name for name in graph.get_graph(xray=1).nodes if name.startswith("rate:")])
# expect: 'rate:call', 'rate:repair', 'rate:validate', 'rate:revise', 'rate:review'

config: Any = {"configurable": {"thread_id": "1"}}
graph.invoke({"review": "Good posters, late delivery."}, config)
state = resume(graph, config, {**edit(scale="1 to 5"), "by": "ada"})
print(state["report"])
# expect: 4 stars after 2 attempts
print("ledger:", [(attempt["status"], attempt["author"]) for attempt in state["attempts"]])
# expect: ledger: [('failed', 'caller'), ('succeeded', 'human:ada')]
