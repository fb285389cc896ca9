"""An answer that streams as the arguments of tool calls: what of it is certain before its end."""

import random

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk

from graph_retry import AttemptsExhausted, retry_llm_call
from graph_retry.data import replay
from tests.parts import draws
from tests.streams import BAD, GOOD, Person

OBJECT = {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}
WORDS = {"type": "object", "properties": {"age": {"type": "string"}}}
MANY = {"title": "Person", "allOf": [{"type": "array", "items": WORDS}]}
BY_PLACE = [{"type": "object", "properties": {"age": {"type": "null"}}}, WORDS, WORDS]
THREE = {"title": "Person", "allOf": [{"type": "array", "prefixItems": BY_PLACE}]}
QUERY = ("search", '{"query": "Ada", "most": 1}')


def chunks(*calls, size=7):
    """Stream tool calls as providers do: a head, then the arguments in pieces."""
    for index, (name, arguments) in enumerate(calls):
        yield piece(index, "", name=name, id=f"call_{index}")
        for start in range(0, len(arguments), size):
            yield piece(index, arguments[start : start + size])


def piece(index, arguments, *, name=None, id=None):
    """Make one piece of a call."""
    made = tool_call_chunk(name=name, args=arguments, id=id, index=index)
    return AIMessageChunk(content="", tool_call_chunks=[made])


def answered(pieces, output, **options):
    """Make a call that streams; return what it came to, and the one record of it."""
    records = []
    options = {"review": False, "on_attempt": records.append, **options}
    try:
        result = retry_llm_call(lambda _: pieces, None, output=output, **options)
    except AttemptsExhausted:
        result = None
    return result, records[0]


@pytest.mark.parametrize(
    ("output", "calls", "path"),
    [
        (Person, [("Person", BAD)], "/age"),
        (Person, [("Person", BAD), ("search", "{}")], "/age"),
        (list[Person], [("Person", GOOD), ("Person", BAD)], "/1/age"),
        ({"title": "Person", **OBJECT}, [("Person", BAD)], "/age"),
    ],
)
@pytest.mark.parametrize("level", ["none", "standard"])
def test_lost_arguments_are_stopped(output, calls, path, level):
    """The record holds what had come of them, and is replayed as it was."""
    _, record = answered(chunks(*calls), output, repair=level)
    assert record["stopped_early"] is True
    assert record["issues"][0]["path"] == path
    spelled = f"[{', '.join(arguments for _, arguments in calls)}]"
    assert (spelled if output == list[Person] else BAD).startswith(record["raw"]["text"])
    (again,) = replay([record], output=output, repair=level)
    assert again.differs == []


@pytest.mark.parametrize(
    ("output", "calls"),
    [
        (Person, [("search", BAD), ("Person", GOOD)]),
        (Person, [("Person", GOOD), ("search", BAD)]),
        (Person, [("Person", GOOD)]),
        (list[Person], [("Person", GOOD), ("Person", GOOD)]),
        (MANY, [("Person", BAD), ("Person", BAD)]),
        (THREE, [QUERY, ("Person", BAD), ("Person", BAD)]),
    ],
)
@pytest.mark.parametrize("level", ["none", "standard"])
def test_what_another_call_may_mend_is_not_stopped(output, calls, level):
    """A call beside it may be the answer, or make a list of both."""
    result, record = answered(chunks(*calls), output, repair=level)
    assert "stopped_early" not in record
    assert result is not None


FIRST = [piece(0, GOOD[:9], name="Person", id="call_0"), piece(0, GOOD[9:])]
HEADS = [piece(index, "", name="Person", id=f"call_{index}") for index in (0, 1)]


@pytest.mark.parametrize(
    "pieces",
    [
        *([FIRST[0], piece(n, GOOD, name="Person", id="call_1"), FIRST[1]] for n in (1, 0, None)),
        [*HEADS, piece(1, GOOD), piece(0, GOOD)],
    ],
    ids=["mixed", "one index for two", "without an index", "heads first"],
)
def test_calls_whose_pieces_are_mixed_are_not_judged(pieces):
    """LangChain puts them in order when all of them have come."""
    result, record = answered(iter(pieces), list[Person], repair="none")
    assert "stopped_early" not in record
    assert [person.age for person in result] == [36, 36]


def test_early_stop_of_arguments_can_be_switched_off():
    """The whole of the wrong arguments is there to see."""
    _, record = answered(chunks(("Person", BAD)), Person, stop_early=False)
    assert (record["failure"]["kind"], "stopped_early" in record) == ("invalid_schema", False)


@pytest.mark.drawn
@pytest.mark.parametrize("output", [Person, list[Person]])
def test_the_cuts_of_arguments_change_nothing(output):
    """However calls are cut, what they come to is what they come to in one piece."""
    rng = random.Random(5)
    slips = [GOOD, BAD, GOOD[:-1] + ",}", "", "{}", GOOD.replace("36", "36 // years"), "no"]
    stopped = 0
    for _ in range(draws(25, 500)):
        names = rng.choices(["Person", "search"], k=rng.randint(1, 3))
        calls = [(name, rng.choice(slips)) for name in names]
        level = rng.choice(["none", "minimal", "standard", "aggressive"])
        whole, _ = answered(chunks(*calls, size=10_000), output, repair=level, stop_early=False)
        cut, record = answered(chunks(*calls, size=rng.randint(1, 60)), output, repair=level)
        assert cut == whole, calls
        stopped += "stopped_early" in record
    assert stopped
