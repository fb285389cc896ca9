"""A streamed answer goes wrong early: it is stopped there, and the model is told what was wrong."""

from collections.abc import Iterator
from typing import Any, Literal

from langgraph.graph import StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import retry_llm_call
from graph_retry.records import Attempt


class Item(BaseModel):
    """One line of an order."""

    article: str
    unit: Literal["piece", "kg"]


class Order(BaseModel):
    """What is extracted."""

    items: list[Item]


class State(TypedDict, total=False):
    """The graph's state."""

    order: dict[str, Any]


written = 0


def stream(prompt: str) -> Iterator[str]:
    """Stand in for `model.stream(prompt)`: until it is told, the third of 100 units is wrong."""
    global written  # noqa: PLW0603 - counts the tokens that were made
    yield '{"items": ['
    for number in range(100):
        unit = "box" if number == 2 and "feedback" not in prompt else "kg"
        comma = ", " if number else ""
        for token in (f'{comma}{{"article": ', f'"no. {number}", "unit": ', f'"{unit}"}}'):
            written += 1
            yield token
    yield "]}"


def report(attempt: Attempt) -> None:
    """Tell what became of each attempt."""
    global written  # noqa: PLW0603
    how = "stopped early" if attempt.get("stopped_early") else attempt["status"]
    print(f"attempt {attempt['number']}: {how} after {written} tokens")
    for issue in attempt["issues"]:
        print(f"  {issue['path']}: {issue['message']}")
    written = 0


def extract(state: State) -> State:
    """Call the model, twice at most, without asking a person."""
    del state
    order = retry_llm_call(
        stream, "Which items?", output=Order, feedback="errors_only", auto_retries=1,
        on_attempt=report,
    )  # fmt: skip
    return {"order": order.model_dump()}


graph = StateGraph(State).add_node("extract", extract).set_entry_point("extract").compile()
progress = [event for event in graph.stream({}, stream_mode="custom") if "value" in event]
# expect: attempt 1: stopped early after
# expect: /items/2/unit: Input should be 'piece' or 'kg'
# expect: attempt 2: succeeded after 300 tokens

last = progress[-1]["value"]
print(f"{len(progress)} partial values, the last one with {len(last['items'])} items")
# expect: partial values, the last one with
