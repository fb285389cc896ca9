"""Review a failing model call in the terminal: `python -m examples.demo [--model openai:…]`.

`--model local` asks the model at `OPENAI_BASE_URL`, at temperature 0.

The thread is kept in `.demo/`. Whenever this process dies, the next run goes on where it stopped.
Without a terminal, scripted answers are given.
"""

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_config

from examples.demo.calls import CallLog
from graph_retry import AnswerRefused, AttemptContext, PendingReview, pending_reviews, resume
from graph_retry.desk.cli.answering.decide import Draft, UnreadableError, completed, from_line, ways
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.show import show_ledger, show_review
from graph_retry.ledger import Ledger
from nodes.extract import Extraction, ask_model, build
from nodes.serving import NoModelError, chat_model

TRUTH = {"vendor": "Nordlicht Druck, Hamburg", "total": 1240.5, "due_date": "2027-03-03"}
"""The right answer, which a scripted person gives if a real model fails twice."""

Answerer = Callable[[PendingReview], str]


def main(arguments: list[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--model", help="a real model as LangChain names it: provider:name")
    model: str | None = parser.parse_args(arguments).model
    model = "local:model" if model == "local" else model
    screen = Screen()
    if model is not None and ":" not in model:
        parser.error(f"--model is written provider:name, e.g. openai:gpt-4.1-mini, not {model!r}")
    try:
        if model is not None:
            chat_model(model)
        _play(model, screen, _typed() if screen.has_person else _spoken(screen))
    except NoModelError as error:
        screen.say(str(error), "bad")
        return 2
    except (KeyboardInterrupt, EOFError):
        screen.say("\nStopped. The same command continues this thread.")
        return 130
    return 0


def _play(model: str | None, screen: Screen, answer: Answerer) -> None:
    """Run one thread to its end, from wherever it is."""
    Path(".demo").mkdir(exist_ok=True)
    name = re.sub(r"[^\w.-]+", "_", model or "scripted")
    log = CallLog(Path(".demo") / f"{name}.sqlite")

    def ask(params: Extraction, context: AttemptContext) -> Any:
        log.add(_thread_of(get_config()), context.attempt, context.idempotency_key)
        screen.say(f"\nAsking model {params.model!r}, attempt {context.attempt} …", "quiet")
        return ask_model(params, context)

    with SqliteSaver.from_conn_string(str(log.path)) as saver:
        graph = build(ask).compile(checkpointer=saver)
        config = _open_thread(graph, saver)
        place = f"thread {_thread_of(config)} in {log.path}"
        if graph.get_state(config).values:
            screen.say(f"Continuing {place}.", "good")
            if not pending_reviews(graph, config):
                resume(graph, config)
        else:
            screen.say(f"Starting {place}.", "good")
            params = Extraction(model=model, temperature=0) if model else Extraction()
            start: Any = {"messages": [], "params": params.model_dump(mode="json")}
            graph.invoke(start, config, durability="sync")
        shown = 0
        while reviews := pending_reviews(graph, config):
            if shown != (shown := reviews[0].attempt):
                show_review(screen, reviews[0])
                if screen.has_person:
                    screen.say(ways(reviews[0].allowed_decisions, reviews[0]), "quiet")
            else:
                screen.say(f"Not applied: {reviews[0].problem}", "bad")
            _answer(screen, answer, reviews[0])
        _tell_the_end(screen, graph.get_state(config).values, log.count(_thread_of(config)))


def _open_thread(graph: Any, saver: SqliteSaver) -> RunnableConfig:
    """Return the newest thread, or a new one if that is finished."""
    # A generator that is kept would keep the database locked.
    newest = next(saver.list(None, filter={"source": "input"}, limit=1), None)
    number = 1 if newest is None else int(_thread_of(newest.config))
    state = graph.get_state({"configurable": {"thread_id": str(number)}})
    finished = state.values and not state.next
    return {"configurable": {"thread_id": str(number + 1 if finished else number)}}


def _thread_of(config: RunnableConfig) -> str:
    return str(config.get("configurable", {})["thread_id"])


def _answer(screen: Screen, answer: Answerer, review: PendingReview) -> None:
    """Read one answer as `graph-retry answer` does; the next review tells if it was not taken."""
    offered, draft = review.allowed_decisions, Draft()
    while True:
        try:
            line = completed(answer(review), offered)
            if line == "skip":
                raise EOFError
            if line in ("", "help"):
                screen.say(ways(offered, review), "quiet")
                continue
            decision: Any = from_line(line, review.shown, draft, offered)
        except UnreadableError as error:
            screen.say(f"Not understood: {error}", "bad")
        else:
            channel = {"channel": "terminal"} if screen.has_person else {}
            with suppress(AnswerRefused):  # the next review says why
                review.answer({**decision, **channel})
            return


def _typed() -> Answerer:
    """Ask the person at the terminal."""
    with suppress(ImportError):  # gives `input` a history, where the platform has it
        importlib.import_module("readline")
    return lambda _: input("answer> ").strip()


def _spoken(screen: Screen) -> Answerer:
    """Give the scripted answers, aloud."""
    screen.say("No terminal, so nobody can be asked: the answers are scripted.", "quiet")

    def ask(review: PendingReview) -> str:
        line = scripted_answer(review)
        screen.say(f"answer> {line}")
        return line

    return ask


def scripted_answer(review: PendingReview) -> str:
    """Answer like a person who first mistypes and then knows better.

    It depends on the review alone, so that a run that was killed goes on in the same way.
    """
    if ":" in review.params["model"]:
        is_first = review.attempt == 1 and review.suggested_params
        return "approve" if is_first else f"respond {json.dumps(TRUTH)}"
    if review.attempt == 1:
        return "edit temperature=0" if review.problem else "edit temprature=0"
    if review.suggested_params and review.attempt < 5:
        return "approve"
    return "reject nobody is at the terminal"


def _tell_the_end(screen: Screen, state: dict[str, Any], count: tuple[int, int]) -> None:
    show_ledger(screen, Ledger(state["attempts"]))
    calls, distinct = count
    if state["status"] == "succeeded":
        screen.say(f"Extracted: {state['messages'][-1].text}", "good")
    else:
        screen.say("The call was cancelled.", "bad")
    repeated = calls - distinct
    crashed = f"; a crash cut off {repeated}, which ran again with the same key" if repeated else ""
    screen.say(f"Model calls: {calls} (attempts: {len(state['attempts'])}){crashed}.")


if __name__ == "__main__":
    sys.exit(main())
