"""Many calls at once: failures go into a CSV file, and the filled-in file answers all of them."""

import csv
from pathlib import Path
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from graph_retry import create_retry_node, edit, pending_reviews, reject, resume

RECEIPTS = ["Taxi EUR 12.50", "Lunch, see page 2", "Hotel 99.00", "Unreadable"]


def listed(before: list[Any], new: Any) -> list[Any]:
    """Collect the output of every branch."""
    return [*before, new]


class State(TypedDict, total=False):
    """The graph's state; branches write the same keys, so the keys have reducers."""

    params: Annotated[list[Any], listed]
    output: Annotated[list[Any], listed]


def read(params: dict[str, Any]) -> str:
    """Stand in for a model that finds a total only where one is written."""
    numbers = [word for word in params["receipt"].split() if word[0].isdigit() and "." in word]
    return f'{{"total": {numbers[0]}}}' if numbers else '{"total": null}'


def fan_out(_: State) -> list[Send]:
    """Start one branch for each receipt."""
    return [Send("read", {"params": {"receipt": receipt}}) for receipt in RECEIPTS]


builder = StateGraph(State)
builder.add_node("read", create_retry_node(read, dict, output=dict[str, float]))
builder.add_conditional_edges(START, fan_out)
graph = builder.compile(checkpointer=InMemorySaver())
config: Any = {"configurable": {"thread_id": "receipts"}}
graph.invoke({}, config)

# One row for each question; a colleague fills the last column in a spreadsheet.
COLUMNS = ["review_id", "receipt", "problem", "correction"]
with Path("questions.csv").open("w", newline="") as file:
    table = csv.DictWriter(file, COLUMNS)
    table.writeheader()
    for review in pending_reviews(graph, config):
        row = {"review_id": review.review_id, "problem": review.issues[0]["message"]}
        table.writerow({**row, "receipt": review.params["receipt"]})
print(Path("questions.csv").read_text().count("\n") - 1, "questions")
# expect: 2 questions

filled = Path("questions.csv").read_text().splitlines()
answered = [filled[0], *(line + "Lunch 23.40" if "Lunch" in line else line for line in filled[1:])]
Path("answers.csv").write_text("\n".join(answered))

# A row without a correction is a rejection. All answers are applied in one run.
with Path("answers.csv").open(newline="") as file:
    answers = {
        row["review_id"]: edit(receipt=row["correction"])
        if row["correction"]
        else reject("left out")
        for row in csv.DictReader(file)
    }
state = resume(graph, config, answers={key: {**answers[key], "by": "ada"} for key in answers})
print(sorted(output["total"] for output in state["output"] if output))
# expect: [12.5, 23.4, 99.0]
