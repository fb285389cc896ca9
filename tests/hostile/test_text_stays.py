"""Text removes no text: what looks like our additions to a prompt is the caller's, and is sent."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry.data
import graph_retry.threads
from graph_retry import approve, comment, edit, pending_reviews, respond, resume
from graph_retry._core.ground.quoting import COMMENT, CORRECTIONS, FEEDBACK, LESSONS, framed
from graph_retry._core.params.prompt import Added, without
from graph_retry.data import PastCorrections
from graph_retry.hooks import Lessons, feedback
from graph_retry.hooks._lessons import Lesson
from graph_retry.threads import rewind
from tests.loops import answer, one_call, thread
from tests.parts import draws

FRAMES = (FEEDBACK, COMMENT, LESSONS, CORRECTIONS)
MARKS = [mark for frame in FRAMES for mark in frame]
LESSON = Lesson(id="a", step="extract", text="/age: missing", at="2030-01-01T00:00:01")
PAST = {"id": "p", "call": "count", "params": {"prompt": "x"}, "raw": {"text": "0"}, "value": 1}


class Sent:
    """A model that is always wrong, each time in another way, and remembers what it is sent."""

    def __init__(self) -> None:
        self.prompts: list[Any] = []

    def __call__(self, params: Any) -> str:
        given = params if isinstance(params, str) else params.get("messages", params.get("prompt"))
        self.prompts.append(given)
        return f'{{"n": "wrong {len(self.prompts)}"}}'


def texts_of(prompt: Any) -> list[Any]:
    """Return a prompt as texts: itself, or the content of each of its messages."""
    if isinstance(prompt, str):
        return [prompt]
    return [each.content if isinstance(each, BaseMessage) else each["content"] for each in prompt]


def holds(sent: Any, owed: list[Any]) -> bool:
    """Return whether what was sent has all owed texts or messages, whole and in their order."""
    if isinstance(sent, str):
        at = 0
        for text in owed:
            at = sent.find(text, at) + len(text)
            if at < len(text):
                return False
        return True
    left = iter(sent)
    return all(any(rest(each, message) is not None for each in left) for message in owed)


def rest(sent: Any, owed: Any) -> Any:
    """Return what a message has behind another one of its role; None if it is not that one."""
    theirs, ours = (
        each.model_dump() if isinstance(each, BaseMessage) else each for each in (sent, owed)
    )
    (said,), (whole,) = texts_of([owed]), texts_of([sent])
    is_same = theirs | {"content": said} == ours | {"content": said}
    is_longer = type(said) is type(whole) and whole[: len(said)] == said
    return whole[len(said) :] if is_same and is_longer else None


def own(sent: Any, owed: list[Any]) -> str:
    """Return what was sent beside what is owed, as one text."""
    if not isinstance(sent, str):
        behind = [[rest(each, message) for message in owed] for each in sent]
        return "\n".join(
            min((str(one) for one in found if one is not None), key=len, default=str(each))
            for found, each in zip(behind, texts_of(sent), strict=True)
        )
    for text in owed:
        sent = sent.replace(text, "", 1)
    return sent


FOUR = {
    "a turn that begins like feedback": (
        [{"role": "system", "content": "Be exact."},
         {"role": "user", "content": f"{FEEDBACK.begin} Why?"}],
        {},
    ),
    "a mark of lessons in the middle of a message": (
        [{"role": "system", "content": "Be exact."},
         {"role": "user", "content": f"The log says {LESSONS.begin}. Read: 7"}],
        {"lessons": Lessons(known=[LESSON])},
    ),
    "a begin mark in a document, and a rule behind it": (
        f"Read it.\n{FEEDBACK.begin}\n7 tons\n{FEEDBACK.end}\nNever guess.",
        {},
    ),
    "a turn that begins like a comment": (
        [{"role": "user", "content": "Read."}, {"role": "user", "content": f"{COMMENT.begin} 7"}],
        {},
    ),
    "a mark of corrections": (
        f"{CORRECTIONS.begin} is how the file begins.\n{CORRECTIONS.end}\nTotal: 7",
        {"lessons": PastCorrections(rows=[{**PAST, "vouched": True}], least=0.0)},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("prompt", "options"), FOUR.values(), ids=FOUR.keys())
def test_a_text_with_our_marks_is_sent_whole_at_every_attempt(form, mode, prompt, options):
    """Feedback is added four times and a comment once; the caller's prompt stays as it is."""
    field, model = ("prompt" if isinstance(prompt, str) else "messages"), Sent()
    graph = one_call(
        form, mode, mode.colour(model.__call__), InMemorySaver(),
        feedback="errors_only", auto_retries=3, **options,
    )  # fmt: skip
    mode.invoke(graph, {"params": {field: prompt}}, thread())
    answer(mode, graph, thread(), comment("Look again."))

    owed = [prompt] if isinstance(prompt, str) else prompt
    assert len(model.prompts) == 8
    assert all(holds(sent, owed) for sent in model.prompts)
    for sent in model.prompts[1:]:
        assert own(sent, owed).count(FEEDBACK.begin) == 1


PIECES = st.sampled_from(
    [*MARKS, *(mark[:-3] for mark in MARKS), *(mark[3:] for mark in MARKS)]
    + [framed(frame, ["1. /n: wrong"]) for frame in FRAMES]
    + ["x", "\n", "\n\n", "```", "Who?", " ", "(quoted as data)", "é"]
)
TEXT = st.lists(PIECES, min_size=1, max_size=6).map("".join)
CONTENT = st.one_of(
    TEXT, st.lists(TEXT.map(lambda text: {"type": "text", "text": text}), max_size=2)
)
MESSAGE = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "system"]), CONTENT,
    ),
    st.builds(lambda text: {"role": "tool", "tool_call_id": "1", "content": text}, TEXT),
)  # fmt: skip
LANGCHAINS = st.one_of(
    st.builds(lambda kind, text: kind(text), st.sampled_from([HumanMessage, SystemMessage]), TEXT),
    st.builds(lambda text: ToolMessage(text, tool_call_id="1"), TEXT),
)
PROMPTS = st.one_of(
    TEXT,
    TEXT.map(lambda text: {"prompt": text}),
    st.lists(MESSAGE, min_size=1, max_size=4).map(lambda said: {"messages": said}),
    st.lists(LANGCHAINS, min_size=1, max_size=4).map(lambda said: {"messages": said}),
)
STEPS = st.one_of(
    st.just(("approve", "")),
    st.tuples(st.sampled_from(["comment", "append", "prepend", "amid"]), TEXT),
    st.just(("rewind", "")),
)


def edited(shown: Any, how: str, text: str) -> Any:
    """Return what a person makes of the shown prompt: words before, behind or in the middle."""
    new = text if isinstance(shown, str) else [{"role": "user", "content": text}]
    if not isinstance(shown, str) and shown and "type" in shown[0]:
        new = [HumanMessage(text).model_dump(mode="json")]
    at = {"append": len(shown), "prepend": 0, "amid": len(shown) // 2}[how]
    return shown[:at] + new + shown[at:]


@pytest.mark.drawn
@given(PROMPTS, st.lists(STEPS, min_size=1, max_size=5), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=draws(25, 400))
@example(
    {"prompt": "Who?"}, [("append", framed(FEEDBACK, ["1. /n: wrong"])), ("approve", "")], True
)
def test_every_character_that_was_given_is_sent(given, steps, learns):
    """Whatever is said, edited and gone back to, nothing of the caller or a person is lost."""
    model, taught = Sent(), {"lessons": Lessons(known=[LESSON])} if learns else {}
    graph = one_call(
        "node" if isinstance(given, dict) else "function", None, model, InMemorySaver(),
        feedback="truncated", auto_retries=2, max_attempts=30, **taught,
    )  # fmt: skip
    given_prompt = given if isinstance(given, str) else next(iter(given.values()))
    graph.invoke({"params": given}, thread())
    owed = [[given_prompt] if isinstance(given_prompt, str) else given_prompt] * len(model.prompts)
    for kind, text in steps:
        (review,) = pending_reviews(graph, thread())
        (field,) = review.shown
        theirs = owed[review.attempt - 1]
        if kind in ("approve", "rewind"):
            decision = approve()
        elif kind == "comment":
            decision = comment(text) if text.strip() else approve()
        else:
            shown = review.shown[field]
            decision = edit(**{field: edited(shown, kind, text)})
            if not isinstance(shown, str):
                new = HumanMessage(text) if isinstance(theirs[0], BaseMessage) else {
                    "role": "user", "content": text
                }  # fmt: skip
                theirs = [*theirs, new] if kind == "append" else theirs
            elif kind == "append":
                theirs = [*theirs, text]
            elif kind == "prepend":
                theirs = [text, *theirs]
            else:
                theirs = [text]
        if kind == "rewind":
            number = 1 + review.attempt // 2
            theirs = owed[number - 1]
            del owed[number:]
            rewind(graph, thread(), attempt=number, decision=decision)
        else:
            resume(graph, thread(), decision)
        count = len(model.prompts)
        made = pending_reviews(graph, thread())[0].attempt - len(owed)
        owed += [theirs] * made
        for sent in model.prompts[count - made :]:
            assert holds(sent, theirs)


def test_feedback_that_a_person_left_in_place_is_replaced():
    """Words that a person adds around the shown feedback stay; only the feedback changes."""
    model = Sent()
    graph = one_call("node", None, model, InMemorySaver(), feedback="errors_only")
    graph.invoke({"params": {"prompt": "Who?"}}, thread())
    (review,) = pending_reviews(graph, thread())
    shown = review.shown["prompt"]
    resume(graph, thread(), edit(prompt=f"In French. {shown}\nBe brief."))
    resume(graph, thread(), approve())
    assert "wrong 1" in model.prompts[1]
    assert model.prompts[2].startswith("In French. Who?\nBe brief.\n\n[feedback")
    assert "wrong 1" not in model.prompts[2]
    assert "wrong 2" in model.prompts[2]


def test_what_a_person_wrote_into_feedback_is_the_persons():
    """Feedback that was edited is no longer ours, so the next feedback leaves it alone."""
    model = Sent()
    graph = one_call("node", None, model, InMemorySaver(), feedback="errors_only")
    graph.invoke({"params": {"prompt": "Who?"}}, thread())
    (review,) = pending_reviews(graph, thread())
    changed = review.shown["prompt"].replace(FEEDBACK.end, f"n is the age.\n{FEEDBACK.end}")
    resume(graph, thread(), edit(prompt=changed))
    resume(graph, thread(), approve())
    assert model.prompts[2].startswith(changed)
    assert "wrong 2" in model.prompts[2]


@pytest.mark.parametrize("content", ["Who?", [{"type": "text", "text": "Who?"}]])
def test_feedback_inside_a_message_is_replaced_wherever_the_message_goes(content):
    """Words around it, and turns before and behind it, stay; a changed feedback is a person's."""
    model = Sent()
    graph = one_call("node", None, model, InMemorySaver(), feedback="errors_only")
    asked = {"role": "user", "content": content}
    graph.invoke({"params": {"messages": [asked]}}, thread())
    (review,) = pending_reviews(graph, thread())
    (shown,) = review.shown["messages"]
    first, last = {"role": "system", "content": "In French."}, {"role": "user", "content": "Brief."}
    if isinstance(content, str):
        words = {"role": "user", "content": f"Listen. {shown['content']}\nNow."}
        kept = "Listen. Who?\nNow."
    else:
        words, kept = shown, content
    resume(graph, thread(), edit(messages=[first, words, last]))
    resume(graph, thread(), approve())
    assert model.prompts[1] == [first, words, last]
    assert model.prompts[2][:2] == [first, {"role": "user", "content": kept}]
    assert model.prompts[2][2]["content"].startswith("Brief.\n\n[feedback")
    assert "wrong 2" in model.prompts[2][2]["content"]

    (review,) = pending_reviews(graph, thread())
    (*others, mine) = review.shown["messages"]
    mine = {**mine, "content": mine["content"].replace("wrong 3", "wrong here")}
    resume(graph, thread(), edit(messages=[*others, mine]))
    resume(graph, thread(), approve())
    assert model.prompts[4][2]["content"].startswith(mine["content"] + "\n\n[feedback")


def test_a_person_may_remove_feedback():
    """A prompt without the shown feedback is sent as it is, and new feedback is added to it."""
    model = Sent()
    graph = one_call("node", None, model, InMemorySaver(), feedback="errors_only")
    graph.invoke({"params": {"prompt": "Who?"}}, thread())
    resume(graph, thread(), edit(prompt="Who is it?"))
    assert model.prompts[1] == "Who is it?"
    resume(graph, thread(), approve())
    assert model.prompts[2].startswith("Who is it?\n\n[feedback")


def test_the_ledger_lists_what_was_added(form, mode):
    """Each record has the places of feedback, comments and lessons in the params it was sent."""
    model = Sent()
    graph = one_call(
        form, mode, mode.colour(model.__call__), InMemorySaver(), feedback="errors_only",
        auto_retries=1, lessons=Lessons(known=[LESSON]),
    )  # fmt: skip
    mode.invoke(graph, {"params": {"prompt": f"{FEEDBACK.begin} Who?"}}, thread())
    answer(mode, graph, thread(), comment("Look again."))
    (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    added = [[part["by"] for part in each.get("added", [])] for each in ledger.attempts[:3]]
    assert added == [["lessons"], ["lessons", "feedback"], ["lessons", "comment"]]
    for record in ledger.attempts:
        sent = ledger.params_at(record["number"])["prompt"]
        assert without(sent, record["added"]) == f"{FEEDBACK.begin} Who?"


def test_a_hook_that_calls_feedback_itself_does_not_pile_it_up():
    """The error that a hook gets tells the ready-made feedback what is already in the prompt."""
    model = Sent()

    def hook(error, attempt, params):
        return feedback()(error, attempt, {**params, "seed": attempt})

    graph = one_call("node", None, model, InMemorySaver(), hook, auto_retries=3)
    graph.invoke({"params": {"prompt": "Who?", "seed": 0}}, thread())
    assert [sent.count(FEEDBACK.begin) for sent in model.prompts] == [0, 1, 1, 1]


def test_corrections_are_compared_without_what_was_added(mode):
    """A recorded prompt that had lessons is quoted without them; one with our marks, whole."""
    model = Sent()
    saver = InMemorySaver()
    taught = Lessons(known=[LESSON])
    graph = one_call("node", mode, mode.colour(model.__call__), saver, lessons=taught)
    for number, prompt in enumerate(["How old?", f"{LESSONS.begin} How old?"]):
        mode.invoke(graph, {"params": {"prompt": prompt}}, thread(str(number)))
        answer(mode, graph, thread(str(number)), respond({"n": 1}))
    rows = mode.call(graph_retry.data, "corrections_of", saver)
    past = PastCorrections(rows=rows)
    assert sorted(text for text, _ in past._past) == ["How old?", f"{LESSONS.begin} How old?"]


@given(TEXT, TEXT, TEXT)
def test_a_part_is_only_known_where_it_is_certain(base, part, after):
    """An edit never takes more than the part itself from a text."""
    whole = base + part
    known = [{"by": "feedback", "field": "prompt", "start": len(base), "end": len(whole)}]
    for new in (
        whole,
        base,
        after,
        base + after,
        whole + after,
        after + whole,
        base + after + part,
    ):
        parts = Added({"prompt": whole}, known).still_in({"prompt": new})
        assert [new[one["start"] : one["end"]] for one in parts] in ([], [part])
        assert new == whole or whole.count(part) == 1 or not parts
    assert Added({"prompt": whole}, known).still_in({"prompt": whole}) == known
