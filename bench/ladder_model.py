"""Extraction tasks with a known truth, and a scripted model that answers them as models do.

One first answer in five is malformed, in seven kinds of equal share, for no source gives shares.
The model never errs in substance: a wrong value can only come from how its text was read. It sees
the text it is sent and nothing else, so it is the same for every competitor.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel

from bench.repair_documents import NAMES, PHRASES, dump
from bench.repair_exact import EXACT

MALFORMED = 0.20
"""Share of first answers that are malformed."""
HEEDED = 0.97
"""Chance that the model corrects itself when it is told what was wrong."""
LUCKY = 0.20
"""Chance that it does so when it is not told; else it gives the same answer again."""


class Visit(BaseModel):
    """One visit of a booking."""

    day: str
    minutes: int


class Booking(BaseModel):
    """What is to be extracted."""

    name: str
    age: int
    postcode: str
    paid: bool
    amount: float
    note: str
    visits: list[Visit]


SCHEMA = f"It must fit this JSON Schema: {json.dumps(Booking.model_json_schema())}"
"""What a prompt says where no client adds the schema by itself."""


@dataclass(frozen=True)
class Task:
    """One extraction: `truth` is the right value, `kind` how the first answer comes out."""

    number: int
    truth: dict[str, Any]
    kind: str

    def prompt(self, instructions: str = "") -> str:
        """Write the prompt; the document comes last."""
        known, visits = self.truth, self.truth["visits"]
        came = "; ".join(f"on {visit['day']} for {visit['minutes']} minutes" for visit in visits)
        return (
            "Extract the booking from the document below as one JSON object with name, age, "
            "postcode, paid, amount, note and visits (day, minutes). Use only what the document "
            f"says.\n{instructions}\n[document {self.number}]\nFront desk, transcript of the "
            f"call. The guest is {known['name']}, {known['age']} years old, of postal district "
            f"{known['postcode']}. The amount agreed on is {known['amount']}, "
            f"{'already paid' if known['paid'] else 'not paid yet'}. Stays: {came}. The guest "
            f"wants this noted, word by word: {known['note']}\n[end of document]"
        )


class Answer(NamedTuple):
    """What the model gives back."""

    text: str
    finish_reason: str = "stop"
    refusal: str | None = None


class RefusedRequestError(Exception):
    """A request that the API refuses, with its HTTP status and code."""

    def __init__(self, status: int, message: str, code: str | None) -> None:
        """Keep what the API says."""
        super().__init__(message)
        self.status, self.code = status, code


def make_tasks(count: int, seed: int) -> list[Task]:
    """Make the tasks, with exactly the stated share of each kind."""
    rng = random.Random(seed)
    malformed = round(count * MALFORMED)
    names = list(KINDS)
    kinds = [names[n % len(names)] if n < malformed else "clean" for n in range(count)]
    rng.shuffle(kinds)
    return [Task(number, _truth(rng), kind) for number, kind in enumerate(kinds)]


def _truth(rng: random.Random) -> dict[str, Any]:
    days = ["Monday", "2 May", "2026-05-03", "the 4th", "Christmas Eve"]
    return {
        "name": f"{rng.choice(NAMES)} {rng.choice(NAMES)}",
        "age": rng.randint(18, 99),
        "postcode": f"{rng.randint(0, 99_999):05}",
        "paid": rng.random() < 0.5,
        "amount": rng.randint(100, 99_999) / 100,
        "note": rng.choice(PHRASES),
        "visits": [
            {"day": rng.choice(days), "minutes": rng.randint(5, 240)}
            for _ in range(rng.randint(1, 4))
        ],
    }


class ScriptedModel:
    """One competitor's copy of the model, with the characters it was sent.

    The number of a task's call is its seed: the same prompts get the same answers. A failed
    correction gives the last answer again.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {task.number: task for task in tasks}
        self._said: dict[int, list[Answer]] = {}
        self.calls = 0
        self.sent = 0
        self.resent = 0

    def __call__(
        self, prompt: str, *, unseen: int = 0, asked: dict[str, Any] | None = None
    ) -> Answer:
        """Answer a prompt.

        `unseen` counts characters sent besides, such as tool definitions, and `asked` is the whole
        request.
        """
        found = re.search(r"\[document (\d+)\]", prompt)
        assert found, "every prompt holds the document"
        task = self._tasks[int(found[1])]
        said = self._said.setdefault(task.number, [])
        self.calls += 1
        self.sent += len(prompt) + unseen
        self.resent += len(prompt) + unseen if said else 0
        said.append(self.answer(task, prompt, said, asked or {}))
        return said[-1]

    def answer(self, task: Task, prompt: str, said: list[Answer], asked: dict[str, Any]) -> Answer:
        """Answer as the task says at first, then as far as the model is told what was wrong."""
        del asked
        rng = random.Random(f"{task.number} {len(said)}")
        if not said and task.kind != "clean":
            return KINDS[task.kind].spoil(rng, task.truth)
        return corrected(rng, task, prompt, said)


def corrected(rng: random.Random, task: Task, prompt: str, said: list[Answer]) -> Answer:
    """Answer rightly where there was no mistake, or where the model was told of it."""
    if said and rng.random() >= (HEEDED if _told(task, prompt, said[-1]) else LUCKY):
        return said[-1]
    return Answer(dump(rng, task.truth))


def _told(task: Task, prompt: str, last: Answer) -> bool:
    """Tell whether what follows the document reports an error and names what the error is in."""
    after = prompt.partition("[end of document]")[2].replace(last.text, "").replace("\\n", "\n")
    names = KINDS[task.kind].named if task.kind in KINDS else r"\w"
    return all(re.search(p, after, re.IGNORECASE) for p in (r"error|invalid|fail|feedback", names))


class Kind(NamedTuple):
    """How an answer is spoilt, and a pattern of what feedback must name to be specific."""

    spoil: Callable[[random.Random, dict[str, Any]], Answer]
    named: str


def _one_of(*modes: str) -> Callable[[random.Random, dict[str, Any]], Answer]:
    def spoil(rng: random.Random, truth: dict[str, Any]) -> Answer:
        made = EXACT[rng.choice(modes)](rng, truth)
        assert made
        return Answer(made[0])

    return spoil


def _digits(rng: random.Random, truth: dict[str, Any]) -> Answer:
    field = rng.choice(["age", "amount", "paid"])
    return Answer(dump(rng, {**truth, field: json.dumps(truth[field])}))


def _words(rng: random.Random, truth: dict[str, Any]) -> Answer:
    wrong = {"age": in_words(truth["age"]), "amount": f"about {truth['amount']} euros"}
    field = rng.choice(list(wrong))
    return Answer(dump(rng, {**truth, field: wrong[field]}))


def _missing(rng: random.Random, truth: dict[str, Any]) -> Answer:
    gone = rng.choice(list(truth))
    return Answer(dump(rng, {key: value for key, value in truth.items() if key != gone}))


def _truncated(rng: random.Random, truth: dict[str, Any]) -> Answer:
    text = dump(rng, truth)
    return Answer(text[: rng.randint(len(text) // 3, len(text) - 1)], "length")


def in_words(number: int) -> str:
    """Spell a number from 18 to 99.

    Example:
        >>> in_words(34)
        'thirty-four'
    """
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    if number < 20:
        return ["eighteen", "nineteen"][number - 18]
    ten, one = tens[number // 10 - 2], number % 10
    return f"{ten}-{ones[one - 1]}" if one else ten


_SYNTAX = r"json|pars|cut off|delimiter"
_FIELD = r"\b(name|age|postcode|paid|amount|note|visits)\b"
KINDS = {
    "trailing comma": Kind(_one_of("trailing_comma", "trailing_commas_everywhere"), _SYNTAX),
    "code fence": Kind(_one_of("fence_json", "fence_bare", "fence_other_tag"), _SYNTAX),
    "prose": Kind(
        _one_of(
            *("prose_before", "prose_after", "prose_both", "prose_braces", "prose_quotes"),
            *("prose_citations", "prose_apostrophe", "fence_in_prose"),
        ),
        _SYNTAX,
    ),
    "digits in quotes": Kind(_digits, _FIELD),
    "number in words": Kind(_words, _FIELD),
    "missing field": Kind(_missing, _FIELD),
    "truncated": Kind(_truncated, _SYNTAX),
}
"""The kinds of malformed answers."""
