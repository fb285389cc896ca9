"""What a thread's journal says about the promises."""

from collections import Counter, defaultdict
from typing import Any

from tests.reliability.crash_worker import GOAL, QUICK, Setting

COUNTS = {
    "wrong": "threads that ended with another result or ledger than one nobody killed",
    "misapplied": "calls made with an answer that was not given to the attempt before",
    "lost": "answers asked for again after they were acknowledged or saved as applied",
    "again": "answers sent and not saved when the worker died, so asked for again",
    "in_flight": "calls repeated that had not been saved when the worker died",
    "unsaved_run": "finished calls repeated because nothing of their run had been saved",
    "after_save": "calls repeated although their result had been saved",
    "no_kill": "calls repeated though nobody died in between",
    "other_key": "repeated calls with another idempotency key",
    "restarted": "threads started again, because nothing of them had been saved, after calls",
    "new_run": "calls repeated by that; it is another run, with keys of its own",
    "refused": "answers that were refused because they were for another attempt",
}


def verdict(setting: Setting, events: list[dict[str, Any]]) -> tuple[Counter[str], str]:  # noqa: C901, PLR0912, PLR0915
    """Count one thread's events; the second value says in words what broke a promise."""
    found: Counter[str] = Counter()
    why: list[str] = []
    made: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    settled: set[str] = set()
    sent: set[str] = set()
    last: dict[int, int] = {}  # per item, the last attempt of this life
    ended: dict[tuple[int, int], str] = {}  # how the repeated call was cut off
    saved: set[str] = set()
    for event in events:
        kind = event["event"]
        if kind == "life":
            for item, attempt in last.items():
                for number in range(1, attempt + 1):
                    if made.get((item, number)):
                        mark = f"call-{item}-{number}"
                        how = "in_flight" if number == attempt else "unsaved_run"
                        ended[item, number] = "after_save" if mark in saved else how
            last = {}
        elif kind == "start":
            found["restarted"] += bool(made)
            ended = dict.fromkeys(made, "new_run")
            settled, sent, saved = set(), set(), set()
        elif kind == "call":
            params, number = event["params"], event["attempt"]
            item = params["item"]
            place, last[item] = (item, number), number
            if made[place]:
                how = ended.pop(place, "no_kill")
                found[how] += 1
                other = event["key"] != made[place][-1]["key"]
                found["other_key"] += other and how != "new_run"
                broken = other if how == "in_flight" else how == "no_kill"
                why += [f"{how}: attempt {number} of item {item} was repeated"] * broken
            made[place].append(event)
            if params != expected(item, number):
                found["misapplied"] += 1
                why.append(f"attempt {number} of item {item} was made with {params}")
        elif kind in ("write saved", "state saved"):
            saved.add(event["mark"])
            if kind == "state saved":
                settled.add(event["mark"])
        elif kind in ("sent", "acknowledged"):
            mark = f"answer-{event['item']}-{event['attempt']}"
            found["refused"] += kind == "sent" and event["refused"]
            if kind == "sent" and mark in settled and not event["refused"]:
                found["lost"] += 1
                why.append(f"{mark} was asked for again")
            elif kind == "sent" and mark in sent:
                found["again"] += 1
            if kind == "acknowledged":
                settled.add(mark)
            sent.add(mark)
        elif kind == "end":
            wrong = told_wrong(setting, event)
            found["wrong"] += bool(wrong)
            why += [wrong] if wrong else []
    return found, "; ".join(why)


def expected(item: int, number: int) -> dict[str, Any]:
    """Return the params an attempt must be made with."""
    if item == QUICK:
        return {"item": QUICK, "n": GOAL, "answer": ""}
    answers = {1: "", 2: "hook"}
    answer = answers.get(number, f"answer-{item}-{number - 1}")
    return {"item": item, "n": number - 1, "answer": answer}


def told_wrong(setting: Setting, end: dict[str, Any]) -> str:
    """Say what is wrong with a finished thread's results and ledgers."""
    items = list(range(3 if setting.shape == "send" else 1))
    quick = [QUICK] if setting.shape.endswith("function") else []
    numbers = dict.fromkeys(items, GOAL + 1) | dict.fromkeys(quick, 1)
    results = [
        {"n": GOAL, "item": item, "mark": f"call-{item}-{numbers[item]}"}
        for item in [*quick, *items]
    ]
    if end["results"] != results:
        return f"the results are {end['results']}"
    calls = {each[0]["item"]: each for each in end["ledgers"]}
    right = {item: [expected(item, k + 1) for k in range(numbers[item])] for item in numbers}
    return "" if calls == right else f"the ledgers are {calls}"


def broken(found: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of one configuration that break a promise."""
    _, _, durability, _, answers = f"{found['setting']} library".split()[:5]
    never = ["stuck", "no_kill", "lost", "unsaved_run", "after_save", "other_key"]
    if answers != "plain":
        never += ["misapplied", "wrong"]
    if durability != "exit":
        never += ["restarted"]
    bad = {name: found[name] for name in never if found.get(name)}
    return bad | ({"failures": found["failures"], "errors": found["errors"]} if bad else {})
