"""How many extractions succeed, at how many calls, and how many values come out wrong.

A scripted model (`bench/ladder_model.py`) answers the same tasks for this library and for others:
in this process, and over loopback HTTP for each library's own client. What is not installed is
named as not run. Run: `python -m bench.ladder`; the extra `bench` has what the rows need.
"""

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from langchain_core.messages import AIMessage

from bench.ladder_model import (
    HEEDED,
    KINDS,
    LUCKY,
    MALFORMED,
    SCHEMA,
    Answer,
    Booking,
    ScriptedModel,
    Task,
    make_tasks,
)
from bench.ladder_rivals import ACCESS, RETRIES, RIVALS, Run
from bench.ladder_server import serving
from bench.ladder_trouble import EQUIPPED, LANES, TROUBLES, TroubledModel, make_talk
from bench.markdown import table
from graph_retry import Completion, create_retry_node

TASKS, HTTP_TASKS, SEED = 5_000, 500, 4
TRUNCATED = "truncated"
"""The kind of answers whose first one is cut off: what another request must make anew."""

Make = Callable[[ScriptedModel], Run]
"""Make a competitor of a model in this process."""


@dataclass
class Row:
    """What one competitor came to."""

    tasks: Sequence[Task]
    model: ScriptedModel
    right: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def cells(self) -> list[str]:
        """Write the row's figures."""
        retries = self.model.calls - len(self.tasks)
        cut_off = sum(task.kind == TRUNCATED for task in self.tasks)
        lost = self.wrong[TRUNCATED] + self.failed[TRUNCATED]
        whole = self.right - (cut_off - lost)
        return [
            f"{100 * self.right / len(self.tasks):.2f} %",
            f"{100 * whole / (len(self.tasks) - cut_off):.2f} %",
            str(self.wrong.total()),
            str(self.failed.total()),
            f"{self.model.calls:,}",
            f"{self.model.calls / self.right:.3f}",
            f"{self.model.sent:,}",
            f"{self.model.resent / retries:,.0f}" if retries else "-",
        ]


def compete(make: Make, tasks: Sequence[Task]) -> Row:
    """Let a competitor do all tasks with a fresh model in this process."""
    row = Row(tasks, ScriptedModel(tasks))
    run_all(row, make(row.model))
    return row


def run_all(row: Row, run: Run, errors: type[Exception] | tuple[()] = ()) -> None:
    """Do all tasks of a row; one that ends with one of the `errors` has failed."""
    for task in row.tasks:
        value = None
        with suppress(errors):
            value = run(task)
        value = value.model_dump() if isinstance(value, Booking) else value
        if value is None:
            row.failed[task.kind] += 1
        elif same(value, task.truth):
            row.right += 1
        else:
            row.wrong[task.kind] += 1


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
    "`json.loads` and pydantic": raw(0),
    "`json.loads` and pydantic, blind retries": raw(RETRIES),
}
NOTES = """\
A success is a value that equals the true one, with its types. A wrong value was accepted although
it differs. The scripted model makes mistakes only in the form of its answer. With a tool, it gives
the same text as the tool's arguments; real models write fewer fences there. If a provider enforces
a schema token by token, fewer answers are malformed. By design, instructor stops at the finish
reason `length` and validates strictly. LangChain's parsers do not get the finish reason, and close
a text that was cut off. `create_agent` and trustcall do not get tool calls whose arguments are not
JSON."""
HEADINGS = ["", "success", "of what was not cut off", "wrong", "failed", "calls", "calls a success"]
HEADINGS += ["characters sent", "characters a retry"]


def main() -> None:
    """Run all that is installed and print the tables."""
    kinds = Counter(task.kind for task in make_tasks(TASKS, SEED))
    print(
        f"{MALFORMED:.0%} of the first answers are malformed, in equal shares: "
        + ", ".join(kind for kind in KINDS if kinds[kind])
        + f". If the model is told what was wrong, it corrects itself in {HEEDED:.0%} of the "
        f"cases; if not, in {LUCKY:.0%}. Otherwise it gives the same answer again. At most "
        f"{RETRIES} retries.\n"
    )
    print(f"In this process, {TASKS:,} tasks (seed {SEED}):\n")
    tasks = make_tasks(TASKS, SEED)
    show({name: compete(make, tasks) for name, make in {**PLAIN, **OURS}.items()})

    print(f"Over loopback HTTP, {HTTP_TASKS:,} of them:\n")
    tasks = make_tasks(HTTP_TASKS, SEED)
    rows: dict[str, Row] = {}
    for name, (package, make) in installed(RIVALS).items():
        row = rows[f"{name} ({package} {version(package)})"] = Row(tasks, ScriptedModel(tasks))
        with serving(row.model) as url:
            run_all(row, make(url))
    show(rows)
    show_troubles()
    for name, (package, _) in RIVALS.items():
        if not find_spec(MODULES.get(package, package.replace("-", "_"))):
            print(f"Not run, because it is not installed: {name} (`pip install {package}`).\n")
    print(NOTES)


def show_troubles() -> None:
    """Run the second mix: trouble of other kinds, each with an equal share."""
    talk = make_talk(HTTP_TASKS, SEED)
    print(
        f"The second mix over loopback HTTP: {HTTP_TASKS:,} tasks, {MALFORMED:.0%} of them in "
        f"trouble: {', '.join(TROUBLES)}. Our lanes have `shorten_history`, `fall_back`, "
        "`raise_limit`, feedback and `transient`; others have their client's own retries, and the "
        "means that their names tell:\n"
    )
    rows: dict[str, Row] = {}
    for name, make in LANES.items():
        rows[name] = Row(talk, TroubledModel(talk))
        with serving(rows[name].model) as url:
            run_all(rows[name], make(url))
    ACCESS["max_retries"] = 2  # what OpenAI's client does by itself
    for name, (_, make) in installed({**RIVALS, **EQUIPPED}).items():
        if not name.startswith("graph-retry"):
            rows[name] = Row(talk, TroubledModel(talk))
            with serving(rows[name].model) as url:
                run_all(rows[name], make(url), Exception)
    show(rows)


def installed(rivals: dict[str, tuple[str, Make]]) -> dict[str, tuple[str, Make]]:
    """Return the competitors whose packages are here."""
    return {
        name: (package, make)
        for name, (package, make) in rivals.items()
        if find_spec(MODULES.get(package, package.replace("-", "_")))
    }


MODULES = {"pydantic-ai-slim": "pydantic_ai"}
"""Modules of packages that are named otherwise."""


def show(rows: dict[str, Row]) -> None:
    """Print a table, and with `--kinds` what kinds of answers failed or came out wrong."""
    print(table(HEADINGS, [[name, *row.cells()] for name, row in rows.items()]) + "\n")
    if "--kinds" not in sys.argv:
        return
    counted = [
        f"- {name}, {what}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
        for name, row in rows.items()
        for what, counts in (("failed", row.failed), ("wrong", row.wrong))
        if counts
    ]
    print("\n".join(["By kind of damage:", "", *counted, ""]))


if __name__ == "__main__":
    # A line for each call that nobody may be asked about would bury the tables.
    logging.getLogger("graph_retry").setLevel(logging.ERROR)
    main()
