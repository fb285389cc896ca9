"""What a gate costs and what it lets through: reviews against errors, by the limit and the model.

A simulated model gives 4,000 valid outputs, one in ten of them wrong, and says how sure it is. One
model knows when it is wrong, another knows it half of the time, a third does not know at all. The
gate asks below its limit, and shows a sample of what would pass; from that sample `summarize`
estimates the errors that passed. Run: `python -m bench.gate`
"""

import random
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from bench.markdown import table
from graph_retry import approve, pending_reviews, respond, resume, retry_llm_call
from graph_retry.data import summarize
from graph_retry.hooks import Gate
from graph_retry.threads import every_ledger

CALLS, WRONG = 4_000, 0.10


def outputs(insight: float) -> list[tuple[bool, float]]:
    """Draw outputs: whether each is right, and how sure the model says it is."""
    draw, made = random.Random(5), list[tuple[bool, float]]()
    for _ in range(CALLS):
        is_right = draw.random() >= WRONG
        knows = draw.random() < insight
        mode = 0.5 if knows and not is_right else 0.95
        made.append((is_right, round(min(1.0, max(0.0, draw.gauss(mode, 0.05))), 4)))
    return made


def run(drawn: list[tuple[bool, float]], gate: Gate) -> list[str]:
    """Send the outputs through a gate, with a person who knows what is right."""

    @entrypoint(checkpointer=InMemorySaver())
    def read(number: int) -> Any:
        def model(params: dict[str, Any]) -> str:
            is_right, sure = drawn[params["number"]]
            return f'{{"right": {int(is_right)}, "confidence": {sure}}}'

        given = {"number": number}
        return retry_llm_call(model, given, output=dict[str, float], name="read", review=gate)

    reviews = 0
    for number, (is_right, _) in enumerate(drawn):
        config: Any = {"configurable": {"thread_id": str(number)}}
        read.invoke(number, config)
        if pending_reviews(read, config):
            reviews += 1
            resume(read, config, approve() if is_right else respond({"right": 1.0}))
    told = summarize(every_ledger(read))["gate"]
    passed = sum(not right and sure >= gate.confidence for right, sure in drawn)
    caught = int(told["audited_wrong"] or 0)
    estimate = told["wrong_passed"]
    return [
        f"{100 * reviews / CALLS:.1f}",
        f"{100 * (passed - caught) / CALLS:.2f}",
        "unknown" if estimate is None else f"{100 * estimate / CALLS:.2f}",
        str(int(told["audited"] or 0)),
    ]


def main() -> None:
    """Print a row for each model and gate."""
    rows = []
    for name, insight in (("always", 1.0), ("half of the time", 0.5), ("never", 0.0)):
        for confidence, sample in ((0.7, 0.0), (0.7, 0.05), (0.9, 0.05)):
            gate = Gate(confidence=confidence, sample=sample)
            figures = run(outputs(insight), gate)
            rows.append([name, f"{confidence:g}", f"{sample:.0%}", *figures])
    columns = ["the model knows when it is wrong", "limit", "sample", "reviews per 100 calls"]
    columns += ["errors let through per 100", "as estimated", "audited"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
