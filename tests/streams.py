"""Streams to test with: scripted ones that count, in the way of a sync or an async caller."""

import json

from pydantic import BaseModel

from graph_retry import aretry_llm_call, retry_llm_call


class Person(BaseModel):
    """What is asked for."""

    name: str
    age: int
    notes: list[str] = []


GOOD = json.dumps({"name": "Ada", "age": 36, "notes": ["wrote the first program"] * 10})
BAD = GOOD.replace("36", '"old"')


class Stream:
    """A scripted stream in the mode's way; it counts the pieces taken, and how often it closed."""

    def __init__(self, mode, size=8):
        self.is_async, self.size = mode.is_async, size
        self.calls, self.taken, self.closed = [], 0, 0

    def __call__(self, params):
        self.calls.append(params)
        text = params if isinstance(params, str) else params["text"]
        pieces = [text[start : start + self.size] for start in range(0, len(text), self.size)]
        return self._alater(pieces) if self.is_async else self._later(pieces)

    def _later(self, pieces):
        try:
            for piece in pieces:
                self.taken += 1
                yield piece
        finally:
            self.closed += 1

    async def _alater(self, pieces):
        try:
            for piece in pieces:
                self.taken += 1
                yield piece
        finally:
            self.closed += 1


def call(mode, llm_call, params, **options):
    """Make a call without a graph."""
    if not mode.is_async:
        return retry_llm_call(llm_call, params, **options)
    return mode.run(lambda: aretry_llm_call(llm_call, params, **options))
