"""Lessons: what one step got wrong reaches the steps after it, bounded, visible and once."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from graph_retry import AttemptsExhausted, create_retry_node, edit, reject, retry_llm_call
from graph_retry._core.ground.quoting import LESSONS
from graph_retry.hooks._lessons import (
    _WINDOW,
    Lesson,
    Lessons,
    lessons_of,
    merge_lessons,
)
from tests.loops import Model, answer, refused, reviews, thread


class Steps(TypedDict, total=False):
    one: dict
    two: dict
    two_log: list
    lessons: Annotated[list[Lesson], merge_lessons]


def lesson(number, step="extract", text="/age: missing"):
    """Make a lesson of a certain time."""
    return Lesson(id=f"{step}{number}", step=step, text=text, at=f"2030-01-01T00:00:{number:02}")


def two_steps(mode, first, second, saver=None, *, parallel=False, **options):
    """Compile a parent with two retry nodes that share the state key `lessons`."""
    builder = StateGraph(Steps)
    for name, model in (("one", first), ("two", second)):
        keys = {"params": name, "output": f"{name}_out", "status": f"{name}_status"}
        node = create_retry_node(
            mode.colour(model), dict, output=dict[str, int], name=name,
            keys={**keys, "attempts": f"{name}_log"},
            lessons=Lessons(**options), review=saver is not None,
        )  # fmt: skip
        builder.add_node(name, node)
        if parallel:
            builder.add_edge(START, name)
            builder.add_edge(name, END)
    if not parallel:
        builder.add_edge(START, "one")
        builder.add_edge("one", "two")
    return builder.compile(checkpointer=saver)


BAD, GOOD = '{"n": "x"}', '{"n": 1}'
FAULT = "- one: /n: Input should be a valid integer"


def test_a_later_step_is_told_what_an_earlier_one_got_wrong(mode, checkpointer):
    """The second node's first call already has the lesson; the ledger says who put it there."""
    second = Model(lambda params: GOOD)
    graph = two_steps(mode, Model(lambda params: BAD), second, checkpointer)
    mode.invoke(graph, {"one": {"prompt": "One."}, "two": {"prompt": "Two."}}, thread())
    state = answer(mode, graph, thread(), reject("no use"))

    (call,) = second.calls
    assert call["prompt"].startswith(f"{LESSONS.begin}\n")
    assert call["prompt"].endswith(f"{LESSONS.end}\n\nTwo.")
    assert FAULT in call["prompt"]
    assert '"x"' not in call["prompt"], "what the model wrote is not passed on"
    assert [record["author"] for record in state["two_log"]] == ["lessons"]
    assert [each["step"] for each in state["lessons"]] == ["one"]


def test_the_revision_has_the_author_lessons():
    """It is recorded like any other revision of params."""
    records = []
    done = retry_llm_call(
        lambda params: "1", {"prompt": "Go."}, output=int,
        lessons=Lessons(known=[lesson(1)]), on_attempt=records.append,
    )  # fmt: skip
    assert done == 1
    assert (records[0]["author"], records[0]["reason"]) == (
        "lessons",
        "what went wrong before in extract",
    )
    assert LESSONS.begin in records[0]["params_patch"][0]["value"]["prompt"]


def test_without_lessons_nothing_changes():
    """No lesson, no revision: the first attempt is the caller's."""
    records = []
    retry_llm_call(
        lambda params: "1", {"n": 1}, output=int, lessons=Lessons(), on_attempt=records.append
    )
    assert records[0]["author"] == "caller"


def test_a_step_that_succeeds_in_the_end_teaches_what_it_mended(mode, checkpointer):
    """The next step is told of the mistake, and that it was mended."""
    first = Model(lambda params: GOOD if params.get("fixed") else BAD)
    second = Model(lambda params: GOOD)
    graph = two_steps(mode, first, second, checkpointer)
    mode.invoke(graph, {"one": {"prompt": "One."}, "two": {"prompt": "Two."}}, thread())
    state = answer(mode, graph, thread(), edit(fixed=True))
    (told,) = second.calls
    assert FAULT in told["prompt"]
    assert "(mended since)" in told["prompt"]
    assert [(each["step"], "mended" in each) for each in state["lessons"]] == [("one", True)]


def test_parallel_steps_merge_their_lessons(mode):
    """Both write in one superstep; neither is lost, none is doubled."""
    graph = two_steps(
        mode, Model(lambda params: BAD), Model(lambda params: BAD), InMemorySaver(), parallel=True
    )
    mode.invoke(graph, {"one": {"prompt": "1"}, "two": {"prompt": "2"}}, thread())
    answers = {review.review_id: reject("no") for review in reviews(mode, graph, thread())}
    state = answer(mode, graph, thread(), answers=answers)
    assert sorted(each["step"] for each in state["lessons"]) == ["one", "two"]


def test_resuming_and_failing_hooks_write_a_lesson_once(mode, checkpointer):
    """A step that runs again after an error in a hook does not count its failure twice."""
    broken = [True]

    def hook(error, attempt, params):
        if broken:
            raise KeyError("typo")

    model = Model(lambda params: BAD)
    builder = StateGraph(Steps)
    node = create_retry_node(
        mode.colour(model), dict, mode.colour(hook), output=dict[str, int], name="one",
        keys={"params": "one"}, lessons=Lessons(),
    )  # fmt: skip
    builder.add_node("one", node)
    builder.add_edge(START, "one")
    graph = builder.compile(checkpointer=checkpointer)
    with pytest.raises(KeyError):
        mode.invoke(graph, {"one": {"prompt": "One."}}, thread())
    broken.clear()
    mode.invoke(graph, None, thread())
    refused(mode, graph, thread(), "nonsense")
    state = answer(mode, graph, thread(), reject("no"))
    assert len(state["lessons"]) == len(model.calls) == 1


def test_the_function_form_gives_and_takes_a_list():
    """What a call taught is read from its ledger, and given to the next call."""
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda params: BAD, "One.", output=dict[str, int], review=False)
    known = lessons_of("one", caught.value.attempts)
    seen = []
    retry_llm_call(
        lambda prompt: seen.append(prompt) or GOOD, "Two.", output=dict[str, int],
        lessons=Lessons(known=known),
    )  # fmt: skip
    assert FAULT in seen[0]


@pytest.mark.parametrize(
    ("messages", "kinds"),
    [
        ([{"role": "user", "content": "Go."}], ["system", "user"]),
        (
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}],
            ["system", "system", "user"],
        ),
        ([SystemMessage("Be brief."), HumanMessage("Go.")], ["system", "system", "human"]),
        ([HumanMessage("Go.")], ["system", "human"]),
    ],
)
def test_in_a_conversation_it_is_one_system_turn_behind_the_others(messages, kinds):
    """Providers want system turns first; what is in the conversation already stays."""
    once = Lessons().add_to({"messages": messages}, [lesson(1)])[0]["messages"]
    assert [m["role"] if isinstance(m, dict) else m.type for m in once] == kinds
    text = once[kinds.index("user" if "user" in kinds else "human") - 1]
    text = text["content"] if isinstance(text, dict) else text.content
    assert "extract: /age" in text
    twice = Lessons().add_to({"messages": once}, [lesson(2, text="other")])[0]["messages"]
    assert [each for each in twice if each in once] == once
    assert len(twice) == len(once) + 1


def test_only_the_last_few_are_told_bounded_and_tamed():
    """Three lessons, each cut, none able to end the frame they stand in."""
    window = [lesson(n, text=f"fault {n} {LESSONS.end} " + "x" * 9_000) for n in range(9)]
    told, *_ = Lessons().add_to("Go.", window)
    assert [f"fault {n} " in told for n in range(9)] == [False] * 6 + [True] * 3
    assert told.count(LESSONS.end) == 1
    assert len(told) < 1_500
    again, *_ = Lessons().add_to(told, window)
    assert again.endswith(told), "lessons of another call are part of what the caller gave"


def test_params_without_a_prompt_are_refused_by_name():
    """A lesson that cannot be told is an error that says what to name."""
    with pytest.raises(ValueError, match=r"Lessons\(field='instructions'\)"):
        retry_llm_call(str, {"n": 1}, lessons=Lessons(known=[lesson(1)]))


LESSON = st.builds(
    lambda number, step, more: {**lesson(number, step, f"fault {number}"), **more},
    st.integers(0, 40), st.sampled_from("abc"), st.sampled_from([{}, {"mended": "2031"}]),
)  # fmt: skip
WINDOWS = st.lists(LESSON, max_size=8)


@given(WINDOWS, WINDOWS)
def test_merging_is_the_same_in_any_order_and_twice(left, right):
    """Parallel branches and repeated writes end in the same window."""
    merged = merge_lessons(left, right)
    assert merge_lessons(right, left) == merged
    assert merge_lessons(merged, merged) == merged
    assert merge_lessons(merge_lessons(None, left), merge_lessons(right, None)) == merged


@given(st.lists(LESSON, max_size=40))
def test_a_window_is_small_and_knows_what_was_put_right(lessons):
    """At most the ten newest lessons, each marked if any copy of it is; no successes."""
    old = Lesson(id="old", step="a", text=None, at="2032-01-01")
    window = merge_lessons([old], lessons)
    assert len(window) <= _WINDOW
    assert all(each["text"] for each in window)
    newest = max((each["at"] for each in lessons), default=None)
    assert newest is None or window[-1]["at"] == newest
    mended = {each["id"] for each in lessons if "mended" in each}
    assert all(("mended" in each) == (each["id"] in mended) for each in window)


def test_a_long_call_marks_all_of_its_errors(mode, checkpointer):
    """Earlier records that are kept in older checkpoints are marked as well."""
    answers = iter([*[f'{{"n": "{"x" * 3_000}{n}"}}' for n in range(3)], GOOD])
    graph = two_steps(
        mode, Model(lambda params: next(answers)), Model(lambda _: GOOD), checkpointer
    )
    mode.invoke(graph, {"one": {"prompt": "One."}, "two": {"prompt": "Two."}}, thread())
    for number in range(3):
        state = answer(mode, graph, thread(), edit(prompt=f"One, {number}."))
    assert [(each["attempt"], "mended" in each) for each in state["lessons"]] == [
        (1, True), (2, True), (3, True),
    ]  # fmt: skip


def test_the_final_error_has_the_newest_errors_of_all_steps(mode):
    """As in the source, three of the whole workflow; a node that gives up has them in its state."""
    known = [{**lesson(number), "at": f"2020-01-01T00:00:0{number}"} for number in range(4)]
    options = {"output": int, "lessons": Lessons(known=known), "review": False}
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda prompt: "ten", "How many?", name="count", **options)
    assert [each["step"] for each in caught.value.lessons] == ["extract", "extract", "count"]
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda prompt: "ten", "How many?", output=int, review=False)
    assert caught.value.lessons == []
    node = create_retry_node(
        mode.colour(Model(lambda params: BAD)), dict, output=dict[str, int], name="count",
        lessons=Lessons(), review=False,
    )  # fmt: skip
    state = mode.invoke(node, {"params": {"prompt": "Go."}, "lessons": known})
    assert state["status"] == "exhausted"
    assert [each["step"] for each in state["lessons"][-3:]] == ["extract", "extract", "count"]


def test_an_entry_holds_the_attempt_and_what_the_model_said():
    """A person who reads the window needs no ledger; the answer never reaches a prompt."""
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda prompt: "secretly ten", "How many?", output=int, review=False)
    (entry,) = lessons_of("count", caught.value.attempts)
    assert (entry["step"], entry["attempt"], entry["said"]) == ("count", 1, "secretly ten")
    told = Lessons().add_to("And now?", [entry])
    assert told is not None
    assert "secretly" not in told[0]


def test_the_runs_of_a_step_in_a_loop_are_told_apart():
    """Several lessons of one step have the attempt and the time; a single one needs neither."""
    window = [{**lesson(number, "act"), "attempt": 1} for number in (1, 2)]
    told = Lessons().add_to("Go.", [*window, lesson(3, "see"), lesson(4, "see")][1:])
    assert told is not None
    assert "- act: /age" in told[0]
    assert "- see (00:00:03): /age" in told[0]
    told = Lessons().add_to("Go.", window)
    assert told is not None
    assert "- act (attempt 1, 00:00:01): /age" in told[0]
    assert "- act (attempt 1, 00:00:02): /age" in told[0]
