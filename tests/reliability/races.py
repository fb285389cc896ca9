"""Processes that answer the same reviews at the same time, on one database.

Usage: python -m tests.reliability.races SCENE STORE LOCATION SIZE; writes one JSON object of
counts. Every process is a fork of this one. Odd ones are async.
"""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graph_retry import AnswerRefused, AttemptContext, StaleDecision, edit
from tests.conftest import Mode
from tests.loops import answer, fan_out, one_call, reviews, thread
from tests.reliability.forking import end, fork
from tests.reliability.journal import SAVERS, Journal, read

Work = Callable[["Racer"], None]
FORMS = ("node", "function")


class Place:
    """Where the processes of one scene meet: a database, a journal, and gates."""

    def __init__(self, store: str, location: str, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.location = location or str(folder / "threads.sqlite")
        self.path, self.log = folder / "journal", folder / "errors.log"
        self._gates = {gate: os.pipe() for gate in ("looked", "go")}

    def start(self, number: int, work: Work, *, sync: bool = False) -> int:
        """Fork a process that works on the database; return its id."""

        def run() -> None:
            with asyncio.Runner() as runner:
                mode = Mode("async" if number % 2 and not sync else "sync", runner)
                work(Racer(self, mode, number))

        return fork(run, self.log)

    def wait(self, *children: int, ending: int = 0) -> None:
        """Wait for processes, which must end in this way."""
        codes = [end(child) for child in children]
        if set(codes) != {ending}:
            told = self.log.read_text() if self.log.exists() else ""
            raise RuntimeError(f"processes ended with {codes}: {told[-3000:]}")

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one kind that any process has noted."""
        return [event for event in read(self.path) if event["event"] == kind]

    def knock(self, gate: str) -> None:
        """Let one process pass a gate."""
        os.write(self._gates[gate][1], b".")

    def wait_at(self, gate: str) -> None:
        """Wait until one knock is left at a gate."""
        os.read(self._gates[gate][0], 1)


RACERS: list["Racer"] = []
"""The racer of this process: the function of a call holds nothing that differs between two."""


def racing(params: dict[str, Any], context: AttemptContext) -> str:
    """Call the model of this process's racer."""
    return RACERS[-1].model(params, context)


class Racer:
    """One process: its number, its mode, and the graphs it knows."""

    def __init__(self, place: Place, mode: Mode, number: int) -> None:
        self.place, self.mode, self.number = place, mode, number
        self.journal = Journal(place.path)
        self.draw = random.Random(number)
        self.on_call: Callable[[Any], None] = lambda params: None
        RACERS[:] = [self]

    def model(self, params: dict[str, Any], context: AttemptContext) -> str:
        """Fail until `n` is 2, and note every call."""
        self.journal.note("call", key=context.idempotency_key, **params)
        self.on_call(params)
        if params["n"] < 2:
            raise ValueError(f"{params['n']} is too small")
        return '{"n": 2}'

    @contextmanager
    def saver(self) -> Iterator[Any]:
        """Open the database."""
        saver_class = SAVERS[self.place.store, self.mode.name]
        with self.mode.opened(saver_class.from_conn_string(self.place.location)) as saver:
            yield saver

    def graph(self, name: str, saver: Any) -> Any:
        """Return the graph a thread runs on: every other thread has the function form."""
        return one_call(FORMS[int(name) % 2], None, racing, saver)

    def wide(self, form: str, saver: Any) -> Any:
        """Return the graph of a `Send` of 20. Its nodes are sync, whoever runs it."""
        return fan_out(form, Mode("sync", asyncio.Runner()), racing, saver, width=20)

    def submit(self, graph: Any, name: str, answers: dict[str, Any]) -> bool:
        """Answer reviews and note what came of it; tell whether the answers were taken."""
        try:
            with suppress(AnswerRefused):
                answer(self.mode, graph, thread(name), answers=answers)
        except StaleDecision as stale:
            self.journal.note("stale", thread=name, by=self.number, why=str(stale))
            return False
        for review_id in answers:
            self.journal.note("won", thread=name, by=self.number, review=review_id)
        return True


def tally(place: Place) -> dict[str, int]:
    """Count answers, refused ones, those of them that did not say who was first, and calls."""
    why = [event["why"] for event in place.events("stale")]
    untold = sum("human answered it at 20" not in each for each in why)
    made = {"won": len(place.events("won")), "calls": len(place.events("call"))}
    return {**made, "stale": len(why), "untold": untold}


def same(place: Place, size: int) -> dict[str, Any]:
    """Let 8 processes answer one review on each of `size` threads, and the winner twice."""
    names = [str(number) for number in range(size)]

    def ask(racer: Racer) -> None:
        with racer.saver() as saver:
            for name in names:
                params = {"item": int(name), "n": 0, "by": -1}
                racer.mode.invoke(racer.graph(name, saver), {"params": params}, thread(name))

    def race(racer: Racer) -> None:
        with racer.saver() as saver:
            graphs = {name: racer.graph(name, saver) for name in names}
            open_ = {name: reviews(racer.mode, graphs[name], thread(name))[0] for name in names}
            place.knock("looked")
            place.wait_at("go")
            for name in racer.draw.sample(names, len(names)):
                mine = {open_[name].review_id: edit(n=1, by=racer.number)}
                if racer.submit(graphs[name], name, mine):
                    racer.submit(graphs[name], name, mine)

    place.wait(place.start(0, ask))
    racers = [place.start(number, race) for number in range(8)]
    for _ in racers:  # each has read every review before any of them answers
        place.wait_at("looked")
    for _ in racers:
        place.knock("go")
    place.wait(*racers)

    winners = {event["thread"]: event["by"] for event in place.events("won")}
    second = {str(event["item"]): event["by"] for event in place.events("call") if event["n"] == 1}
    return {
        "reviews": size,
        **tally(place),
        "applied": sum(winners.get(name) == second.get(name) for name in names),
    }


def fan(place: Place, size: int) -> dict[str, Any]:
    """Let processes answer a `Send` of 20 in random batches until nothing is asked any more."""
    for form in FORMS:

        def ask(racer: Racer, form: str = form) -> None:
            with racer.saver() as saver:
                graph = racer.wide(form, saver)
                racer.mode.invoke(graph, {"results": []}, thread(form))

        def race(racer: Racer, form: str = form) -> None:
            with racer.saver() as saver:
                graph = racer.wide(form, saver)
                while racer.mode.call(graph, "get_state", thread(form)).next:
                    open_ = reviews(racer.mode, graph, thread(form))
                    if not open_:  # somebody else applies the last answers
                        answer(racer.mode, graph, thread(form))
                    count = min(len(open_), racer.draw.randint(1, 20))
                    batch = racer.draw.sample(open_, count)
                    answers = {each.review_id: edit(n=each.attempt) for each in batch}
                    if answers:
                        racer.submit(graph, form, answers)
                state = racer.mode.call(graph, "get_state", thread(form)).values
                racer.journal.note("end", results=len(state["results"]))

        place.wait(place.start(0, ask))
        # Under `ainvoke` on the async PostgreSQL saver, LangGraph hangs where more sync nodes call
        # a graph at once than asyncio's pool has threads.
        sync = form == "function"
        place.wait(*[place.start(number, race, sync=sync) for number in range(size)])
    calls = place.events("call")
    return {
        **tally(place),
        "reviews": len({event["review"] for event in place.events("won")}),
        "different": len({(event["item"], event["n"], event["key"]) for event in calls}),
        "complete": sum(event["results"] == 20 for event in place.events("end")),
    }


def running(place: Place, size: int) -> dict[str, Any]:
    """Answer `size` threads while the retry that an earlier answer caused is still running.

    The late answer names its review on every second pair of threads, and nothing on the others.
    """

    def first(racer: Racer, name: str) -> None:
        def wait(params: Any) -> None:
            if params["n"] == 1:
                place.knock("looked")
                place.wait_at("go")

        racer.on_call = wait
        with racer.saver() as saver:
            graph = racer.graph(name, saver)
            racer.mode.invoke(graph, {"params": {"item": int(name), "n": 0}}, thread(name))
            (review,) = reviews(racer.mode, graph, thread(name))
            racer.journal.note("asked", thread=name, review=review.review_id)
            racer.submit(graph, name, {review.review_id: edit(n=1)})

    def second(racer: Racer, name: str) -> None:
        with racer.saver() as saver:
            graph = racer.graph(name, saver)
            look = graph.get_state

            def looked(*args: Any, **kwargs: Any) -> Any:
                seen, graph.get_state = look(*args, **kwargs), look
                place.knock("looked")
                return seen

            graph.get_state = looked
            (asked,) = [event for event in place.events("asked") if event["thread"] == name]
            named = {"review_id": asked["review"]} if int(name) % 4 < 2 else {}
            try:
                with suppress(AnswerRefused):
                    answer(racer.mode, graph, thread(name), {**edit(n=2), **named})
            except StaleDecision as stale:
                racer.journal.note("stale", thread=name, why=str(stale))

    for number in range(size):
        name = str(number)
        runs = place.start(1, lambda racer, name=name: first(racer, name))
        place.wait_at("looked")
        comes = place.start(0, lambda racer, name=name: second(racer, name))
        place.wait_at("looked")  # only then is the running call let go on
        place.knock("go")
        place.wait(runs, comes)
    return tally(place)


def takeover(place: Place, size: int) -> dict[str, Any]:
    """Let one process ask and die, and another one continue: after asking, or in the next call."""

    def first(racer: Racer, name: str) -> None:
        def die(params: Any) -> None:
            if params["n"] == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        racer.on_call = die
        with racer.saver() as saver:
            graph = racer.graph(name, saver)
            racer.mode.invoke(graph, {"params": {"item": int(name), "n": 0}}, thread(name))
            (review,) = reviews(racer.mode, graph, thread(name))
            if int(name) % 4 < 2:
                os.kill(os.getpid(), signal.SIGKILL)
            racer.submit(graph, name, {review.review_id: edit(n=1)})

    def second(racer: Racer, name: str) -> None:
        with racer.saver() as saver:
            graph = racer.graph(name, saver)
            answer(racer.mode, graph, thread(name))
            while open_ := reviews(racer.mode, graph, thread(name)):
                racer.submit(graph, name, {open_[0].review_id: edit(n=open_[0].attempt)})
            state = racer.mode.call(graph, "get_state", thread(name)).values
            racer.journal.note("end", results=state["output"])

    for number in range(size):
        name = str(number)
        place.wait(place.start(0, lambda racer, name=name: first(racer, name)), ending=-9)
        place.wait(place.start(number % 2, lambda racer, name=name: second(racer, name)))
    calls = place.events("call")
    return {
        "threads": size,
        "calls": len(calls),
        "different": len({(event["item"], event["n"], event["key"]) for event in calls}),
        "complete": sum(event["results"] == {"n": 2} for event in place.events("end")),
    }


def main(scene: str, store: str, location: str, size: str) -> None:
    """Run one scene and write what was counted."""
    scenes = {"same": same, "fan": fan, "running": running, "takeover": takeover}
    with tempfile.TemporaryDirectory() as folder:
        found = scenes[scene](Place(store, location, Path(folder)), int(size))
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
