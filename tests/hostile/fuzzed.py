"""What no client should send and no model should write, as Hypothesis strategies."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graph_retry import Completion
from tests.review.questions import TITLE

Values = st.SearchStrategy[Any]


class Boxed(BaseModel):
    content: Any = None


class Grumpy:
    """Fails at whatever is asked of it but its class."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__


class Speechless(Exception):
    """An exception whose text and whose attributes fail."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    @property
    def response(self) -> Any:
        raise RuntimeError("no response")


def nested(depth: int, kind: type = list, leaf: Any = "approve") -> Any:
    """Build a value `depth` levels deep."""
    for _ in range(depth):
        leaf = [leaf] if kind is list else {"a": leaf}
    return leaf


def looped() -> Any:
    """Build a dict that holds itself."""
    value: dict[str, Any] = {"type": "edit"}
    value["params"] = value
    return value


def members(pairs: list[tuple[str, Any]]) -> str:
    """Spell a JSON object with its keys as they come, also twice."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(each)}" for key, each in pairs) + "}"


# Any character at all: control characters, lone surrogates and both directions of writing too.
CHARACTERS = st.characters(codec=None) | st.characters(categories=["Cc", "Cf", "Cs"])
KNOWN = [
    "approve", "accept", "retry", "edit", "reject", "response", "ignore", "respond", "nil", " Yes ",
    "null", "NaN", "1e999", "-0", "r2", "d1", TITLE, "\x1b[2J", "\u202eabc", "אב", "```json", "{",
    "[", "<think>", "{'n': 1,}", '{"n": 1', '{"type": "approve", "type": "reject"}', "comment",
]  # fmt: skip
KEYS = [
    "type", "action", "params", "revised_params", "args", "arguments", "edited_action", "message",
    "output", "attempt", "review_id", "decision_id", "by", "channel", "resume", "decisions", "n",
    "prompt", "value", "name", "id", "__agui_cancelled__", "rewind", "a/b", "~", "",
]  # fmt: skip
IDS = [0, -1, 1, 2, 3, 2.0, "2", True, False, None, 2**63, 10**400, float("nan"), "r2", "r1", "d1"]

words = st.sampled_from(KNOWN)
texts = words | st.text(CHARACTERS, max_size=12)
huge = st.builds(lambda text, times: text * times, texts, st.integers(0, 4_000))
keys = st.sampled_from(KEYS) | texts
EXTREMES = [
    float("nan"), float("inf"), 1e308, -0.0, 2**63, 2**64, -(2**80), 10**400, "\0", "\ud800",
]  # fmt: skip
extremes = st.sampled_from(EXTREMES)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts | extremes


def built_of(leaves: Values) -> Values:
    """Make values nested a few levels, of keys that answers and outputs have."""
    inner = leaves
    for _ in range(2):
        inner = st.one_of(
            leaves, st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)
        )
    return inner


any_json = built_of(scalars)
deep = st.builds(nested, st.integers(0, 240), st.sampled_from([list, dict]), scalars)
bottomless = st.builds(
    lambda depth, opened, closed: opened * depth + closed * depth,
    st.integers(0, 12_000),
    st.sampled_from(["[", '{"a":', '[{"n":', "{}"]),
    st.sampled_from(["", "]", "}", "}]", "1"]),
)
documents = st.one_of(
    any_json.map(json.dumps),
    st.builds(lambda key, some: members([(key, each) for each in some]), keys, st.lists(scalars)),
    st.builds(lambda value, at: json.dumps(value)[at:], any_json, st.integers(-40, 9)),
    st.builds(lambda value, at: json.dumps(value)[:at], any_json, st.integers(0, 40)),
)
any_text = st.one_of(texts, huge, documents, bottomless)

ids = st.sampled_from(IDS) | scalars
marks = st.just({}) | st.dictionaries(
    st.sampled_from(["attempt", "review_id", "decision_id", "by"]), ids
)
fields = st.fixed_dictionaries({"n": st.sampled_from([0, "0", 7.5, None]) | any_json}) | any_json
edited = st.builds(
    lambda title, key, args: {"name": title, "action": title, key: args},
    words,
    st.sampled_from(["args", "arguments"]),
    fields,
)
shapes = st.one_of(
    words,
    st.builds(lambda word, rest: {"type": word, **rest}, words, marks),
    st.builds(lambda word, args: [{"type": word, "args": args}], words, edited | texts | any_json),
    st.builds(lambda word, key, each: {"action": word, key: each}, words, keys, fields),
    st.builds(lambda word, form: {"type": word, "edited_action": form}, words, edited).map(
        lambda decision: {"decisions": [decision]}
    ),
    st.builds(lambda each, rest: {"type": "edit", "params": each, **rest}, fields, marks),
    st.builds(lambda each, rest: {"type": "respond", "output": each, **rest}, any_json, marks),
    st.builds(lambda text, rest: {"type": "reject", "message": text, **rest}, texts | huge, marks),
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """Take a shape that clients send, and change something about it."""
    value = draw(shapes)
    how = draw(st.integers(0, 6))
    if how == 0 and isinstance(value, dict):
        return {**value, draw(keys): draw(any_json)}
    if how == 1 and isinstance(value, dict):
        value.pop(draw(st.sampled_from(sorted(value))))
    if how == 2:
        return json.dumps(value)
    if how == 3:
        return {draw(st.sampled_from(["resume", "decisions", "args"])): value}
    if how == 4:
        return nested(draw(st.integers(1, 12)), leaf=value)
    return value


ODD = [
    b"\xff", b"approve", bytearray(b"{}"), memoryview(b"x"), (1, 2), {3}, object(), int, 1j, len,
    {None: 1}, {(1, 2): 3, True: 4}, range(3), Grumpy(), Boxed(content=looped()), looped(),
    nested(10_000), nested(10_000, dict), 10**5_000,
]  # fmt: skip
odd = st.sampled_from(ODD)

json_answers = st.one_of(mutated(), mutated(), any_json, any_text, deep)
any_answers = json_answers | built_of(scalars | odd)

wanted = st.fixed_dictionaries({"n": st.integers(-9, 9) | scalars})
spelled = any_text | wanted.map(json.dumps)
fenced = st.builds("<think>{}</think>\n```json\n{}\n```".format, texts, spelled)
outputs = st.one_of(spelled, fenced, wanted, built_of(scalars | odd))
messages = st.builds(
    lambda text, extra, how: AIMessage(text, additional_kwargs=extra, response_metadata=how),
    any_text,
    st.dictionaries(st.sampled_from(["parsed", "refusal", "x"]), outputs, max_size=2),
    st.dictionaries(
        st.sampled_from(["finish_reason", "stop_reason"]),
        st.sampled_from(["stop", "length", "content_filter", 5]) | texts,
    ),
)
completions = st.builds(
    Completion,
    outputs,
    st.none() | st.dictionaries(keys | st.just("total_tokens"), any_json | odd, max_size=3),
    st.sampled_from(["stop", "length", None]) | texts | odd,
)
boxed = st.builds(lambda content: Boxed(content=content), any_json | odd)
errors = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from([ValueError, RecursionError, TimeoutError, Speechless]),
    any_text,
)
any_outputs = st.one_of(outputs, outputs, messages, completions, boxed, errors)


def fuzzed(
    values: Values, examples: int, *, start: Any, smaller: bool = True
) -> Callable[[Callable[[Any], None]], Any]:
    """Run a check on this many values, the same ones every time that it is given this start.

    Looking for a `smaller` value that fails takes minutes where each is sent through a graph.
    """
    phases = list(Phase) if smaller else [Phase.generate]
    set_up = settings(max_examples=examples, phases=phases)
    return lambda check: seed(start)(set_up(given(values)(check)))
