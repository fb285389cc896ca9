"""End a process at every write and inside user code, go on from what is saved, and compare.

Usage: python -m tests.reliability.every_write SCENES STORE MODE DURABILITY WAYS STEP DSN

One process plays a scene undisturbed. Before and after each of its writes, and wherever its user
code says so, the storage is copied: a copy holds what the end of the process at that moment leaves
behind. From each copy (every STEP-th of them) a new process goes on in the same WAY: with `resume`,
with `invoke(None)` and answers by interrupt, or with plain answers. Calls, keys, questions, inbox,
results and ledgers must equal those of the undisturbed process, but for a call that was in flight.
Every process is a fork of this one. With a STEP of `k8`, processes are killed from outside instead
(SIGKILL), at 8 times of a life.

With the durability `exit`, LangGraph saves nothing of the graph around a call before its first
pause: what died before that has not begun. (Nor are later steps saved before the next pause: the
scenes whose nodes call one after the other, such as `joined node`, tell such calls as repeated.)
"""

import asyncio
import json
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from langgraph.checkpoint.serde.types import ERROR
from langgraph.types import Command

import graph_retry
from graph_retry._core.loop.asking.person import LEFT_OVER
from graph_retry._core.threads import history, inbox
from tests.conftest import Mode
from tests.loops import thread
from tests.reliability.forking import end, fork
from tests.reliability.journal import LIVES, SAVERS, Journal, noting, read
from tests.reliability.more_scenes import SCENES, Scene
from tests.reliability.place import Place

WAYS = ("resume", "invoke", "command")
_MOST_STEPS, _MOST_FAULTS = 25, 20
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"\b[0-9a-f]{24}\b")


class Life:
    """What one process does with a scene; `copy` is called at each moment it might end."""

    def __init__(
        self, copy: Callable[[int], None] | None = None, journal: Journal | None = None
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self._journal = journal
        self.moments: list[tuple[int, str]] = []
        self._copy, self._lock = copy, threading.RLock()

    def note(self, event: str, **told: Any) -> None:
        """Note what user code does."""
        with self._lock:
            self.tell(event, **told)
            self.moment(event)

    def tell(self, event: str, **told: Any) -> None:
        """Note what is no moment of its own."""
        self.events.append({"event": event, **told})
        if self._journal is not None:
            self._journal.note(event, **told)

    def moment(self, what: str) -> None:
        """Pass a moment at which the process might end."""
        with self._lock:
            if self._copy is not None:
                # Counted first: another thread's write may end while the storage is copied.
                told = len(self.events)
                self._copy(len(self.moments))
                self.moments.append((told, what))

    def saved(self, writes: Any) -> None:
        """Note what finished writes hold; LangGraph's note of an error ends no call."""
        told = [write for write in writes if write[0] != ERROR]
        self.tell("saved", data=str(told))

    def saver(self, store: str, mode: str) -> Any:
        """Return a saver class that tells this life of its writes."""
        life, plain = self, SAVERS[store, mode]

        class Telling(plain):
            def put(self, *args: Any, **more: Any) -> Any:
                life.moment("before put")
                done = super().put(*args, **more)
                life.moment("after put")
                return done

            def put_writes(self, config: Any, writes: Any, *args: Any, **more: Any) -> None:
                life.moment("before writes")
                super().put_writes(config, writes, *args, **more)
                life.saved(writes)
                life.moment("after writes")

            async def aput(self, *args: Any, **more: Any) -> Any:
                life.moment("before put")
                done = await super().aput(*args, **more)
                life.moment("after put")
                return done

            async def aput_writes(self, config: Any, writes: Any, *args: Any, **more: Any) -> None:
                life.moment("before writes")
                await super().aput_writes(config, writes, *args, **more)
                life.saved(writes)
                life.moment("after writes")

        Telling.__name__ = plain.__name__
        Telling.__module__ = plain.__module__
        return Telling

    def live(self, scene: Scene, way: str, place: Place, number: int | None) -> None:
        """Bring the scene's thread to its end, in one way, from what is saved in a place."""
        LIVES[:] = [self]
        with asyncio.Runner() as runner, place.opened(number) as location:
            mode = Mode(place.mode, runner)
            made = self.saver(place.store, place.mode).from_conn_string(location)
            with mode.opened(made) as saver:
                graph = scene.build(mode, noting).compile(checkpointer=saver)
                client = _Client(scene, way, mode, graph, {"durability": place.durability}, self)
                for _ in range(_MOST_STEPS):
                    if client.step():
                        return
                self.note("wrong", why=f"it has not ended after {_MOST_STEPS} steps")


class _Client:
    """Whoever starts a thread, answers, and goes on with it."""

    def __init__(
        self, scene: Scene, way: str, mode: Mode, graph: Any, how: dict[str, Any], life: Life
    ) -> None:
        self._scene, self._way, self._mode, self._graph = scene, way, mode, graph
        self._how, self._life, self._config = how, life, thread()
        self._is_first = True
        self._before: set[str] = set()

    def step(self) -> bool:
        """Do the next thing, by what the thread shows; return whether it is over."""
        mode, graph, config, how = self._mode, self._graph, self._config, self._how
        first, self._is_first = self._is_first, False
        state = mode.call(graph, "get_state", config)
        if state.created_at is None:
            # With the durability `exit`, the ledgers of a process that died before are told, too.
            self._before = {each.namespace for each in self._ledgers()}
            self._life.tell("began")
            mode.invoke(graph, self._scene.given, config, **how)
            return False
        # A node whose writes are saved is not shown as the next one, also before the thread's end.
        results = state.values.get("results") or str(state.values.get("structured_response") or "")
        if not state.next and len(results) >= self._scene.whole:
            if self._scene.after(mode, graph, config, results):
                return False
            self._tell_end(results)
            return True
        open_ = self._look()
        if self._way == "invoke" and first:
            mode.invoke(graph, None, config, **how)
        elif self._scene.first(mode, graph, config, state, open_):
            pass
        elif open_:
            self._answer(open_, is_only=len(state.interrupts) == 1)
        elif self._way == "resume":
            mode.call(graph_retry, "resume", graph, config, **how)
        else:
            mode.invoke(graph, None, config, **how)
        return False

    def _look(self) -> list[Any]:
        """List what is asked, and compare the places that tell it."""
        mode, graph, config = self._mode, self._graph, self._config
        open_ = mode.call(graph_retry, "pending_reviews", graph, config)
        listed = mode.call(inbox, "list_reviews", graph)
        ids, in_inbox = (sorted(each.review_id for each in some) for some in (open_, listed))
        if ids != in_inbox:
            self._life.note("wrong", why=f"the thread shows {ids}, and the inbox {in_inbox}")
        for each in open_:
            problem = each.problem
            if self._way == "command" and problem == LEFT_OVER:
                problem = None  # LangGraph gave an answer that names no question to the next one
            told = {"attempt": each.attempt, "params": each.params, "problem": problem}
            self._life.note("asked", review_id=each.review_id, **told)
        return list(open_)

    def _answer(self, open_: list[Any], *, is_only: bool) -> None:
        answers = [(review, self._scene.answer(review)) for review in open_]
        if self._way == "resume":
            by_review = {review.review_id: answer for review, answer in answers}
            mode, graph, config = self._mode, self._graph, self._config
            mode.call(graph_retry, "resume", graph, config, answers=by_review, **self._how)
            return
        given: Any = {review.interrupt_id: answer for review, answer in answers}
        if self._way == "command" and is_only:
            given = answers[0][1]
        self._mode.invoke(self._graph, Command(resume=given), self._config, **self._how)

    def _ledgers(self) -> list[Any]:
        ledgers = self._mode.call(history, "attempts_of", self._graph, self._config)
        return list(ledgers)

    def _tell_end(self, results: Any) -> None:
        ledgers = [each for each in self._ledgers() if each.namespace not in self._before]
        told = [
            [
                each.namespace.partition(":")[0],
                [
                    [
                        *(record["status"], record["author"], record["idempotency_key"]),
                        (record["decision"] or {}).get("type"),
                        each.params_at(record["number"]),
                    ]
                    for record in each.attempts
                ],
            ]
            for each in ledgers
        ]
        self._life.note("end", results=results, ledgers=told)


def different(
    calm: list[dict[str, Any]], dead: list[dict[str, Any]], after: list[dict[str, Any]]
) -> list[str]:
    """Say what differs from the undisturbed life in one that ended and one that went on."""
    calm, ended = _named(calm), len(dead)
    whole = _named([*dead, *after])
    dead, after = whole[:ended], whole[ended:]
    wrong = [event["why"] for event in (*dead, *after) if event["event"] == "wrong"]
    saved = "".join(event["data"] for event in dead if event["event"] == "saved")
    calls = [event for event in dead if event["event"] == "call"]
    last = {call["told"][0]: call for call in calls}.values()
    in_flight = Counter(_call(call) for call in last if call["mark"] not in saved)
    made = Counter(_call(event) for event in (*dead, *after) if event["event"] == "call")
    right = Counter(_call(event) for event in calm if event["event"] == "call")
    again, missing = made - right - in_flight, right - made
    wrong += [f"{call} was made {number} times too often" for call, number in again.items()]
    wrong += [f"{call} was not made" for call in missing]
    for kind in ("asked", "end"):
        told, should = (
            {json.dumps(event) for event in events if event["event"] == kind}
            for events in ([*dead, *after], calm)
        )
        wrong += [f"instead of {should - told} there is {told - should}"] * (told != should)
    return wrong


def _named(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events whose ids are named by what they belong to.

    Ids differ between two runs of a scene, and for what had not begun when a process ended.
    """
    names: dict[str, str] = {}
    for event in events:
        if event["event"] == "call":
            name, given = f"key of {event['told']}", event["key"]
        elif event["event"] == "asked":
            told = (event["attempt"], event["params"], event["problem"])
            name, given = _UUID.sub("", f"review of {told}"), event["review_id"]
        else:
            continue
        if given not in names:
            names[given] = f"{name}, number {sum(name in each for each in names.values()) + 1}"
    told = _UUID.sub("uuid", json.dumps(events))
    named = list(json.loads(_ID.sub(lambda found: _in_json(names.get(found[0], "?")), told)))
    for event in named:
        event["ledgers"] = sorted(event.get("ledgers", ()), key=str)  # in no order of their own
    return named


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _call(event: dict[str, Any]) -> str:
    return str({name: event[name] for name in ("told", "attempt", "key")})


def _forked(work: Callable[[Life], None], life: Life, folder: Path) -> Life:
    """Have a fork live, and return what it noted."""
    told, log = folder / "told.json", folder / "errors.log"

    def working() -> None:
        try:
            work(life)
        except Exception:  # noqa: BLE001 - what a client would see
            life.events.append({"event": "wrong", "why": traceback.format_exc()[-400:]})
        told.write_text(json.dumps([life.events, life.moments], default=str))

    told.unlink(missing_ok=True)
    code = end(fork(working, log))
    if not told.exists():
        why = f"ended with {code}: {log.read_text() if log.exists() else ''}"
        life.events.append({"event": "wrong", "why": why})
        return life
    life.events, life.moments = json.loads(told.read_text())
    return life


def _compared(calm: Life, dead: list[dict[str, Any]], after: Life, place: Place) -> list[str]:
    if place.durability != "exit" or after.events[0]["event"] != "began":
        return different(calm.events, dead, after.events)
    return different(calm.events, [], after.events)


def kill(scene: str, way: str, place: Place, folder: Path, times: int) -> dict[str, Any]:
    """Kill a scene from outside at times of its life, and tell what was different."""
    place.begin()
    for number in range(times):
        place.copy(number)
    started, calm = time.perf_counter(), Life()
    _forked(lambda life: life.live(SCENES[scene], way, place, None), calm, folder)
    lasted = time.perf_counter() - started
    faults, killed = [event["why"] for event in calm.events if event["event"] == "wrong"], 0
    for number in range(times):
        log = folder / f"{number}.journal"
        doomed = Life(journal=Journal(log))
        # The process that dies is not warmed up, and a busy machine is slower: not all are killed.
        live = partial(doomed.live, SCENES[scene], way, place, number)
        killed += end(fork(live, folder / "errors.log"), lasted * (number + 0.5) / times) == -9
        after = _forked(
            lambda life, at=number: life.live(SCENES[scene], way, place, at), Life(), folder
        )
        faults += [f"kill {number}: {why}" for why in _compared(calm, read(log), after, place)]
        place.end(number)
    place.end(None)
    setting = f"{scene}, {place}, {way}"
    return {"setting": setting, "moments": times, "ended": killed, "faults": faults}


def play(scene: str, way: str, place: Place, folder: Path, step: int) -> dict[str, Any]:
    """End a scene at its moments, and tell how often and what was different."""
    place.begin()
    offset, ended = crc32(f"{scene} {place} {way}".encode()) % step, 0

    def copy(number: int) -> None:
        if number % step == offset:
            place.copy(number)

    calm = _forked(lambda life: life.live(SCENES[scene], way, place, None), Life(copy), folder)
    faults: list[str] = [event["why"] for event in calm.events if event["event"] == "wrong"]
    for number, (events, what) in enumerate(calm.moments):
        if number % step != offset:
            continue
        if len(faults) < _MOST_FAULTS:
            after = _forked(
                lambda life, at=number: life.live(SCENES[scene], way, place, at), Life(), folder
            )
            wrong = _compared(calm, calm.events[:events], after, place)
            faults += [f"{number} ({what}): {why}" for why in wrong]
            ended += 1
        place.end(number)
    place.end(None)
    setting = f"{scene}, {place}, {way}"
    return {"setting": setting, "moments": len(calm.moments), "ended": ended, "faults": faults}


def main(*given: str) -> None:
    """Play scenes in some ways and write what was found."""
    scenes, store, mode, durability, ways, step, dsn = (*given, "")[:7]
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    found = []
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        for number, (scene, way) in enumerate(
            (scene, way) for scene in scenes.split(",") for way in ways.split(",")
        ):
            own = Path(folder) / str(number)
            own.mkdir()
            place = Place(store, mode, durability, own, dsn)
            how = kill if step.startswith("k") else play
            found.append(how(scene, way, place, own, int(step.lstrip("k"))))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
