"""Whether an evaluation tells what another model would have needed: reviews foretold and made.

A simulated model reads some layouts of invoices, is sometimes wrong without knowing it, and fails
for the other layouts. 600 calls are recorded and reviewed. Then other models are evaluated on the
recorded calls, and afterwards the same invoices are really given to them, with reviews.
Run: `python -m bench.evaluation`
"""

import random
import re
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from bench.markdown import table
from graph_retry import pending_reviews, respond, resume, retry_llm_call
from graph_retry.data import evaluate

CALLS, LAYOUTS = 600, 20
Model = Callable[[dict[str, Any]], str]


def invoices() -> list[str]:
    """Make invoices; each says its layout and its total."""
    draw = random.Random(11)
    return [
        f"Layout {draw.randrange(LAYOUTS)}, total {draw.randrange(10, 9_999)}" for _ in range(CALLS)
    ]


def total_of(prompt: str) -> int:
    """Return what is right."""
    return int(re.findall(r"\d+", prompt)[-1])


def model(name: str, reads: int, wrong: float) -> Model:
    """Make a model that reads the first layouts, and gives a wrong total in a share of its calls.

    What it does with an invoice is drawn by its name and the invoice: it is the same each time.
    """

    def answer(params: dict[str, Any]) -> str:
        prompt = params["prompt"]
        layout = int(re.findall(r"\d+", prompt)[0])
        if layout >= reads:
            return '{"total": "unclear"}'
        is_wrong = random.Random(f"{name} {prompt}").random() < wrong
        return f'{{"total": {total_of(prompt) + is_wrong}}}'

    answer.__name__ = name
    return answer


def stream(answer: Model) -> tuple[Any, int, int]:
    """Give all invoices to a model; return the graph, the reviews, and wrong outputs unseen."""

    @entrypoint(checkpointer=InMemorySaver())
    def read(prompt: str) -> Any:
        return retry_llm_call(answer, {"prompt": prompt}, output=dict[str, int], name="read")

    reviews = unseen = 0
    for number, prompt in enumerate(invoices()):
        config: Any = {"configurable": {"thread_id": str(number)}}
        output = read.invoke(prompt, config)
        if pending_reviews(read, config):
            reviews += 1
            resume(read, config, respond({"total": total_of(prompt)}))
        else:
            unseen += output != {"total": total_of(prompt)}
    return read, reviews, unseen


def main() -> None:
    """Print a row for each model."""
    recorded, before, _ = stream(model("small", 12, 0.0))
    print(f"Recorded: {CALLS} calls, {before} of them reviewed.\n")
    rows = []
    for name, reads, wrong in (("same", 12, 0.0), ("large", 18, 0.02), ("hasty", 20, 0.25)):
        done = evaluate(recorded, model(name, reads, wrong), output=dict[str, int])
        told = done.figures()
        _, reviews, unseen = stream(model(name, reads, wrong))
        names = ("would have asked", "reviews avoided", "differ")
        rows.append([name, *(told[each] for each in names), reviews, unseen])
    columns = ["model", "foretold: would have asked", "reviews avoided", "differ from a person's"]
    print(table([*columns, "made: reviews", "wrong outputs that nobody saw"], rows))


if __name__ == "__main__":
    main()
