"""How many extractions succeed, at how many calls, and how many values come out wrong.

A scripted model (`bench/ladder_model.py`) answers the same tasks for this library and for others;
what is not installed is printed as absent. Run: `python bench/ladder.py`; to see all rows, first
`pip install instructor langchain-classic trustcall`.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from langchain_core.messages import AIMessage

from bench import ladder_rivals as rivals
from bench.ladder_model import (
    HEEDED,
    KINDS,
    LUCKY,
    MALFORMED,
    Answer,
    Booking,
    ScriptedModel,
    Task,
    make_tasks,
)
from graph_retry import Completion, create_retry_node

TASKS, SEED, RETRIES = 5_000, 4, 3
SCHEMA = f"It must fit this JSON Schema: {json.dumps(Booking.model_json_schema())}"

Run = Callable[[Task], dict[str, Any] | None]
"""Do one task: the accepted value, or None."""
Make = Callable[[ScriptedModel], Run]


@dataclass
class Row:
    """What one competitor came to."""

    tasks: Sequence[Task]
    model: ScriptedModel
    seconds: float = 0.0
    right: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def cells(self) -> list[str]:
        """Write the row's figures."""
        retries = self.model.calls - len(self.tasks)
        return [
            f"{100 * self.right / len(self.tasks):.2f} %",
            str(self.wrong.total()),
            str(self.failed.total()),
            f"{self.model.calls:,}",
            f"{self.model.calls / self.right:.3f}",
            f"{self.model.sent:,}",
            f"{self.model.resent:,}",
            f"{self.model.resent / retries:,.0f}" if retries else "-",
            f"{self.seconds:.0f} s",
        ]


def compete(make: Make, tasks: Sequence[Task]) -> Row:
    """Let a competitor do all tasks with a fresh model."""
    row = Row(tasks, ScriptedModel(tasks))
    run = make(row.model)
    started = time.perf_counter()
    for task in tasks:
        value = run(task)
        if value is None:
            row.failed[task.kind] += 1
        elif same(value, task.truth):
            row.right += 1
        else:
            row.wrong[task.kind] += 1
    row.seconds = time.perf_counter() - started
    return row


def same(left: Any, right: Any) -> bool:
    """Compare two values, types included: 1, 1.0, "1" and true are four values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def raw(retries: int) -> Make:
    """Read with `json.loads`, validate with pydantic, send the same prompt again if that fails."""

    def make(model: ScriptedModel) -> Run:
        def run(task: Task) -> dict[str, Any] | None:
            for _ in range(retries + 1):
                text = model(task.prompt(SCHEMA)).text
                with suppress(ValueError):
                    return Booking.model_validate(json.loads(text)).model_dump()
            return None

        return run

    return make


def as_text(answer: Answer) -> Completion:
    """Give a model's answer as text."""
    return Completion(answer.text, finish_reason=answer.finish_reason)


def as_tool_call(answer: Answer) -> AIMessage:
    """Give it as the arguments of a tool call beside some prose, as LangChain's models do."""
    called = {"name": "Booking", "id": "1"}
    try:
        calls: dict[str, Any] = {"tool_calls": [{**called, "args": json.loads(answer.text)}]}
    except ValueError:
        broken = {**called, "args": answer.text, "error": None, "type": "invalid_tool_call"}
        calls = {"invalid_tool_calls": [broken]}
    reason = {"finish_reason": answer.finish_reason}
    return AIMessage("I note the booking.", response_metadata=reason, **calls)


def ours(give: Callable[[Answer], Any] = as_text, **options: Any) -> Make:
    """Make the node form with some options; nobody is asked."""

    def make(model: ScriptedModel) -> Run:
        def call(params: dict[str, Any]) -> Any:
            return give(model(params["prompt"]))

        node = create_retry_node(call, dict, output=Booking, review=False, **options)

        def run(task: Task) -> dict[str, Any] | None:
            done = node.invoke({"params": {"prompt": task.prompt(SCHEMA)}})
            return done["output"] if done["status"] == "succeeded" else None

        return run

    return make


OURS: dict[str, Make] = {
    "graph-retry, repair only": ours(auto_retries=0),
    "graph-retry": ours(feedback="errors_only", auto_retries=RETRIES),
    "graph-retry, tool calls": ours(as_tool_call, feedback="errors_only", auto_retries=RETRIES),
}
PLAIN: dict[str, Make] = {
    "json.loads + pydantic": raw(0),
    "json.loads + pydantic, blind retries": raw(RETRIES),
}
RIVALS: dict[str, tuple[str, Make]] = {
    "instructor, Mode.JSON": ("instructor", rivals.instructor("JSON", RETRIES)),
    "instructor, Mode.MD_JSON": ("instructor", rivals.instructor("MD_JSON", RETRIES)),
    **{
        name: ("langchain-classic", rivals.retry_parser(name, RETRIES))
        for name in ("RetryOutputParser", "RetryWithErrorOutputParser")
    },
    "trustcall": ("trustcall", rivals.trustcall(RETRIES)),
}
NOTES = """
A success is a value that equals the truth, types included; a wrong value is accepted and does not.
instructor ends at the finish reason `length` by design, and validates strictly by default. A
provider's JSON mode writes no fences or prose: for a model of text its mode is MD_JSON.
LangChain's parsers are not given the finish reason, and close a text that was cut off.
trustcall corrects tool calls: what is no JSON never reaches it as one, so that its row says little.
"""
HEADINGS = ["", "success", "wrong", "failed", "calls", "per success"]
HEADINGS += ["characters sent", "in retries", "per retry", "time"]


def main() -> None:
    """Run all that is installed and print the table."""
    tasks = make_tasks(TASKS, SEED)
    kinds = Counter(task.kind for task in tasks)
    print(
        f"{TASKS:,} tasks (seed {SEED}); {MALFORMED:.0%} of the first answers are malformed: "
        + ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS)
        + f".\nTold what was wrong, the model corrects itself with {HEEDED:.0%}, else with "
        f"{LUCKY:.0%}; otherwise it gives the same answer again. At most {RETRIES} retries.\n"
    )
    rows = {name: compete(make, tasks) for name, make in {**PLAIN, **OURS}.items()}
    absent: list[str] = []
    for name, (package, make) in RIVALS.items():
        if find_spec(package.replace("-", "_")):
            rows[f"{name} ({package} {version(package)})"] = compete(make, tasks)
        else:
            absent.append(f"{name}: absent (pip install {package})")
    lines = [HEADINGS, *([name, *row.cells()] for name, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        figures = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print(name.ljust(widths[0]), *figures, sep="  ")
    print(*absent, sep="\n")
    for name, row in rows.items():
        for what, counted in (("failed", row.failed), ("wrong", row.wrong)):
            if counted:
                print(f"{name}, {what}:", ", ".join(f"{n} {k}" for k, n in counted.items()))
    print(NOTES)


if __name__ == "__main__":
    main()
