"""Params that differ from run to run are another call, which is told; `key=` is exact."""

import itertools
import time

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import (
    AnswerRefused,
    CallCancelled,
    aretry_llm_call,
    edit,
    reject,
    respond,
    retry_llm_call,
)
from tests.identity.cities import (
    CITIES,
    REVIEWED,
    Guide,
    finish,
    one_node,
    params_of,
    right,
    right_counts,
)
from tests.loops import Model, answer, refused, reviews, thread

SUBSTITUTIONS = {
    "order number": ("order_7f3a9c1e2b4d5f60", "order_5a6b70c1e2b4d5f6"),
    "short order number": ("order 10731", "order 10732"),
    "invoice": ("INV-2026-001841", "INV-2026-001842"),
    "phone number": ("+49 30 1234567", "+49 30 7654321"),
    "phone number in digits": ("4930123456789", "4930987654321"),
    "ISBN": ("978-3-16-148410-0", "978-0-306-40615-7"),
    "date": ("2026-11-23", "2026-11-24"),
    "written date": ("23.11.2026", "24.12.2026"),
    "weekday": ("every monday", "every friday"),
    "month": ("in march", "in october"),
    "time of day": ("at 10:31", "at 17:45"),
    "moment": ("2026-11-23T10:31:00Z", "2026-11-24T10:31:00Z"),
    "seconds": (1763890000, 1763990000),
    "UUID": ("6f9619ff-8b86-4011-b42d-00cf4fc964ff", "7a0142ee-10c4-4f90-8d2c-2b7f4d1f7a11"),
    "hexadecimal": ("deadbeef01", "cafebabe02"),
    "order of words": ("first the ferry, then the fort", "first the fort, then the ferry"),
    "order of a list": (["a1", "b2"], ["b2", "a1"]),
    "number": (1, 2),
    "nothing": (None, "something"),
}
PLACES = {
    "field": lambda value: {"about": value},
    "text": lambda value: {"prompt": f"Tell me of {value}, please."},
    "nested": lambda value: {"meta": [{"about": {"it": value}}]},
}


def node_of(mode, guide, calls, changing=time.time_ns):
    """Return a node that makes calls `(name, city, key)`; its output lists their results."""

    def given(name, city, key):
        options = {"name": name} if key is None else {"name": name, "key": key}
        return (guide, {**params_of(city), "now": changing()}), options

    def node(state):
        told = []
        for call in calls:
            arguments, options = given(*call)
            told.append(retry_llm_call(*arguments, **options))
        return {"output": told}

    async def anode(state):
        told = []
        for call in calls:
            arguments, options = given(*call)
            told.append(await aretry_llm_call(*arguments, **options))
        return {"output": told}

    return anode if mode.is_async else node


def node_with(mode, model, make_params):
    """Return a node of one call, whose params are made anew at every entry."""

    def node(state):
        return {"output": retry_llm_call(model, make_params(), name="ask")}

    async def anode(state):
        return {"output": await aretry_llm_call(model, make_params(), name="ask")}

    return anode if mode.is_async else node


def closed_at_first(params):
    """Answer with the params, but for those that no person has looked at."""
    if not params.get("open"):
        raise ValueError("closed")
    return params


def entered(params):
    """Return what makes the first params at the first entry, and the second ones after that."""
    made = itertools.chain(params[:1], itertools.repeat(params[1]))
    return lambda: next(made)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SUBSTITUTIONS)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_call_with_other_params_never_gets_the_result_of_the_first(mode, name, place):
    """However alike they are, the second call is one of its own; the field is told, and `key=`."""
    first, second = map(PLACES[place], SUBSTITUTIONS[name])
    model = Model(closed_at_first)
    graph = one_node(node_with(mode, model, entered([first, second])), InMemorySaver())
    mode.invoke(graph, {}, thread())
    told = refused(mode, graph, thread(), edit(open=True)).message
    assert model.calls == [first, second]

    state = answer(mode, graph, thread(), edit(open=True))

    assert state["output"] == {**second, "open": True}
    assert "key=" in told
    assert f"`{next(iter(first))}`" in told


@pytest.mark.parametrize("way", ["resume", "plain"])
def test_a_repetition_is_told_in_the_question_and_in_the_log(mode, way, caplog):
    """At the first one: the call, the fields that differ, and the way out."""
    guide = Guide()
    graph = one_node(node_of(mode, guide, [("guide", "Paris", None)]), InMemorySaver())
    mode.invoke(graph, {}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.value["note"] is None
    if way == "resume":
        told = refused(mode, graph, thread(), edit(closed=False)).message
    else:
        mode.invoke(graph, {}, thread())  # a new run of the thread is another matter
        assert not [message for message in caplog.messages if "key=" in message]
        (review,) = reviews(mode, graph, thread())
        assert "was ended unanswered" in review.value["note"]
        assert "key=" not in review.value["note"]
        return

    (again,) = reviews(mode, graph, thread())
    (logged,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
    for text in (told, again.value["note"], logged):
        assert "`guide`" in text
        assert "`now`" in text
        assert "key=" in text
        assert "`city`" not in text
    assert guide.counts() == {"Paris": 2}


@pytest.mark.parametrize("key", [None, "Rome"])
def test_a_finished_call_that_is_paid_again_is_told(mode, checkpointer, key, caplog):
    """Only the answered call has the same params; the finished one before it is a new call."""
    guide, count = Guide(), itertools.count()
    calls = [("guide", "Rome", key), ("other", "Paris", "Paris")]
    graph = one_node(node_of(mode, guide, calls, lambda: next(count)), checkpointer)
    mode.invoke(graph, {}, thread())
    assert not caplog.messages

    answer(mode, graph, thread(), edit(closed=False))

    assert guide.counts() == {"Rome": 1 if key else 2, "Paris": 2}
    told = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert [("`now`" in each, "key=" in each, "`city`" in each) for each in told] == (
        [] if key else [(True, True, False)]
    )


@pytest.mark.parametrize("cities", [("Rome", "Paris"), ("Paris", "Rome"), CITIES], ids=str)
def test_changing_params_of_calls_in_a_loop(mode, cities):
    """Every result is its own call's; what is paid twice was told."""
    guide, told = Guide(), []
    graph = one_node(
        node_of(mode, guide, [("guide", city, None) for city in cities]), InMemorySaver()
    )
    mode.invoke(graph, {}, thread())
    for _ in range(3):
        open_ = reviews(mode, graph, thread())
        answers = {each.review_id: {"type": "edit", "params": {"closed": False}} for each in open_}
        try:
            answer(mode, graph, thread(), answers=answers)
        except AnswerRefused as error:
            told.append(error.message)

    assert told
    assert all("`now`" in message and "key=" in message for message in told)
    assert mode.call(graph, "get_state", thread()).values.get("output") is None


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize("cities", [CITIES, CITIES[::-1]], ids=str)
def test_calls_with_keys_in_a_loop(mode, checkpointer, cities, way):
    """Protects the loop with `key=city`: right, at exactly its price."""
    guide = Guide()
    calls = [("guide", city, city) for city in cities]
    graph = one_node(node_of(mode, guide, calls), checkpointer)
    mode.invoke(graph, {}, thread())

    answered = finish(mode, graph, thread(), way)

    assert mode.call(graph, "get_state", thread()).values["output"] == [
        right()[city] for city in cities
    ]
    assert guide.counts() == right_counts(cities)
    assert len(answered) == len(REVIEWED)


def test_two_equal_calls_with_one_key_are_two_calls(mode):
    """Protects a key that is used twice in a node: a number among equal ones tells them apart."""
    guide = Guide()
    calls = [("guide", "Rome", "same"), ("guide", "Rome", "same")]
    graph = one_node(node_of(mode, guide, calls, lambda: 0), InMemorySaver())
    mode.invoke(graph, {}, thread())

    assert guide.counts() == {"Rome": 2}


def test_one_key_for_two_different_calls_is_refused(mode):
    """Protects both calls from each other: params do not count, so the key would mix them up."""
    guide = Guide()
    calls = [("guide", "Rome", "same"), ("guide", "Bern", "same")]
    graph = one_node(node_of(mode, guide, calls), InMemorySaver())

    with pytest.raises(ValueError, match="key='same'"):
        mode.invoke(graph, {}, thread())

    assert guide.counts() == {"Rome": 1}


def made_again(read, doc):
    """Make the same call again after each rejection."""
    for _ in range(3):
        try:
            return read("bad", {"doc": doc})
        except CallCancelled:
            continue
    return None


def one_in_the_other(read, doc):
    """Make a call in the function of a call with the same name."""

    def outer(params):
        return "outer" if read("bad", {"of": params["doc"]}) else ""

    return retry_llm_call(outer, {"doc": doc}, output=int, name="read")


def a_third_one(read, doc):
    """Make two equal calls, then another one."""
    return [
        read("bad", {"doc": doc}),
        read("bad", {"doc": doc}),
        read("bad", {"doc": doc, "at": 2}),
    ]


@pytest.mark.parametrize(
    ("calls", "answers"),
    [
        (made_again, [reject("again"), reject("again")]),
        (one_in_the_other, [respond(1)]),
        (a_third_one, [respond(1), respond(2)]),
    ],
)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_no_call_is_taken_for_a_changed_one(mode, checkpointer, calls, answers, caplog):
    """Equal calls and calls inside a call have not changed, so nothing is said."""

    def read(text, params):
        return retry_llm_call(lambda _: text, params, output=int, name="read")

    graph = one_node(lambda _: {"output": calls(read, "d7")}, checkpointer)
    mode.invoke(graph, {}, thread())
    for each in answers:
        answer(mode, graph, thread(), each)

    (review,) = reviews(mode, graph, thread())
    assert review.value["note"] is None
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_an_equal_call_of_an_earlier_run_is_no_changed_one(mode, checkpointer, caplog):
    """A loop of the user's that made a call several times before its error makes it again."""

    async def mistaken(_):
        return "bad"

    deployed = [mistaken]

    def node(_):
        errors = []
        while len(errors) < 2:
            try:
                return {"output": retry_llm_call(deployed[-1], {}, output=int, name="read")}
            except TypeError as error:
                errors.append(error)
        raise errors[-1]

    graph = one_node(node, checkpointer)
    with pytest.raises(TypeError, match="is async"):
        mode.invoke(graph, {}, thread())
    deployed.append(lambda _: "bad")
    mode.invoke(graph, None, thread())

    (review,) = reviews(mode, graph, thread())
    assert review.value["note"] is None
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
