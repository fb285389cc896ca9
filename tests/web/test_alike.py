"""Fix once, apply to many: each is shown before it is answered, and answered by itself."""

import json
import re

import pytest

from graph_retry import respond, resume
from graph_retry.desk.web import Access
from graph_retry.desk.web.applying import Runs
from graph_retry.desk.web.forms.carrying import carry
from graph_retry.desk.web.forms.odd import odd_ones
from graph_retry.desk.web.forms.ways import NotYetError
from graph_retry.threads import attempts_of, list_reviews
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

TEXT = "Read invoice {}. Be brief."


def previewed(client, way, fields, number=0):
    """Open a review, fill in an answer, and ask what it does to all alike; returns the page."""
    form = Form(opened(client, number)[1])
    form.choose(way)
    for name, text in fields.items():
        form.fill(name, text)
    form.controls.append(["alike", "1"])
    return client.post(form.action, files=form.posted()).text


def ended(client, page):
    """Send what was previewed, and return the page that tells what came of it."""
    form = Form(page)
    shown = client.post(form.action, files=form.posted())
    while 'http-equiv="refresh"' in shown.text:
        shown = client.get(str(shown.url))
    return shown.text


def test_one_edit_is_shown_for_each_and_made_for_each(desk):
    """Words that were added are added to each prompt, and every call keeps the rest of its own."""
    for number in range(4):
        desk.wait(f"t{number}", {"prompt": TEXT.format(number), "extra": {"n": number}})
    with desk.client() as client:
        assert "4 alike" in client.get("/").text
        typed = {"text:/prompt": TEXT.format(3) + " In euros.", "choice:/model": '"large"'}
        page = previewed(client, "edit", typed)
        assert page.count("<ins> In euros.</ins>") == 4
        assert len(desk.calls) == 4
        assert "4 answers are applied." in ended(client, page)
    made = {call.prompt: (call.model, call.extra["n"]) for call in desk.calls[4:]}
    assert made == {TEXT.format(n) + " In euros.": ("large", n) for n in range(4)}
    for number in range(4):
        (ledger,) = attempts_of(desk.graph, {"configurable": {"thread_id": f"t{number}"}})
        decision = ledger.attempts[0]["decision"]
        assert (decision["type"], decision["by"], decision["channel"]) == ("edit", "ada", "web")


def test_a_suggestion_that_is_put_in_is_put_in_everywhere(desk):
    """In the form of the call it is a change, as if it had been typed."""
    desk.options["on_retry"] = lambda error, attempt, params: params.model_copy(
        update={"prompt": f"{params.prompt} Count."}
    )
    for number in range(2):
        desk.wait(f"t{number}", {"prompt": TEXT.format(number)})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.press("params take:1")
        form = Form(sent(client, form).text)
        form.controls.append(["alike", "1"])
        page = client.post(form.action, files=form.posted()).text
        assert page.count("<ins> Count.</ins>") == 2
        assert "2 answers are applied." in ended(client, page)
    assert {call.prompt for call in desk.calls[2:]} == {f"{TEXT.format(n)} Count." for n in (0, 1)}


def test_only_what_is_ticked_is_answered(desk):
    """A tick that is taken away leaves its review as it is; each answered case is named."""
    for number in range(3):
        desk.wait(f"t{number}", {"prompt": f"case {number}"})
    with desk.client() as client:
        form = Form(previewed(client, "reject", {"words.reject": "no ships"}))
        ticks = [control for control in form.controls if control[0] == "tick"]
        form.controls.remove(ticks[1])
        page = sent(client, form).text
        assert "2 answers are applied." in page
        assert re.findall(r">(case \d)</b> <span class=\"quiet\">(\w+)", page) == [
            ("case 2", "t2"), ("case 0", "t0"),
        ]  # fmt: skip
    assert [review.thread_id for review in list_reviews(desk.graph)] == ["t1"]


def test_what_was_answered_meanwhile_is_told_and_left(desk):
    """A review that changed since it was shown is not answered, and no other waits for it."""
    for number in range(3):
        desk.wait(f"t{number}")
    with desk.client() as client:
        page = previewed(client, "reject", {"words.reject": "no ships"})
        config = {"configurable": {"thread_id": "t1"}}
        resume(desk.graph, config, {**respond({"name": "Bob", "count": 1}), "by": "bob"})
        done = ended(client, page)
    assert "2 answers are applied." in done
    assert "An answer was not applied." in done
    assert "<b>t1</b> · count, attempt 1: bob answered it just now." in done
    assert "no ships" in done
    (ledger,) = attempts_of(desk.graph, config)
    assert ledger.outcome == "responded"


def test_an_answer_that_lost_the_race_does_not_count_as_applied(desk, monkeypatch):
    """Between the preview and the run, somebody else was faster: the reason is shown."""
    for number in range(2):
        desk.wait(f"t{number}")
    with desk.client() as client:
        page = previewed(client, "reject", {"words.reject": "no ships"})
        start = Runs.start

        def late(runs, name, sent_form):
            config = {"configurable": {"thread_id": "t1"}}
            resume(desk.graph, config, {**respond({"name": "Bob", "count": 1}), "by": "bob"})
            start(runs, name, sent_form)

        monkeypatch.setattr(Runs, "start", late)
        done = ended(client, page)
    assert "1 answer is applied." in done
    assert "human:bob answered it" in done
    assert "no ships" in done


def test_what_was_not_shown_is_never_answered(desk):
    """A form that names a review that nobody was shown leaves it open."""
    desk.wait("t0")
    with desk.client() as client:
        desk.wait("t1")
        form = Form(previewed(client, "reject", {}))
        desk.wait("t2")
        new = list_reviews(desk.graph)[0].key
        marks = [control[1] for control in form.controls if control[0] == "tick"]
        form.controls.append(["tick", f"{new}:{marks[0].partition(':')[2]}"])
        done = sent(client, form).text
        assert "2 answers are applied." in done
        assert "An answer was not applied." in done
    assert [review.thread_id for review in list_reviews(desk.graph)] == ["t2"]


def test_another_answer_than_the_one_that_was_shown_is_not_given(desk):
    """Marks count for the answer that was previewed: beside another one they answer nothing."""
    desk.wait("t0")
    desk.wait("t1")
    with desk.client() as client:
        shown = Form(previewed(client, "reject", {"words.reject": "no ships"}))
        other = dict(Form(previewed(client, "approve", {})).controls)
        for control in shown.controls:
            control[1] = other["asked"] if control[0] == "asked" else control[1]
        assert "0 answers are applied." in sent(client, shown).text
        shown = Form(previewed(client, "reject", {}))
        for control in shown.controls:
            control[1] = "not base64" if control[0] == "asked" else control[1]
        assert sent(client, shown).status_code == 400
    assert len(desk.calls) == len(list_reviews(desk.graph)) == 2


def test_a_review_that_differs_is_left_to_the_person(desk):
    """Where a text was replaced, a review with another text there is shown as left out."""
    desk.wait("t0", {"prompt": "Read the second bill."})
    desk.wait("t1", {"prompt": "Read the first bill."})
    with desk.client() as client:
        page = previewed(client, "edit", {"text:/prompt": "Look at the bill."})
        assert "“prompt” has another value here" in page
        assert [name for name, _ in Form(page).controls].count("tick") == 1
        assert "1 answer is applied." in ended(client, page)
    assert desk.calls[-1].prompt == "Look at the bill."


def test_outputs_are_corrected_alike_and_shown_whole(desk):
    """A corrected field is corrected in each output; each keeps what else it was read as."""
    names = iter(["Ada", "Bob", "Cy"])
    desk.says = lambda params: json.dumps({"name": next(names), "count": "many"})
    for number in range(3):
        desk.wait(f"t{number}")
    with desk.client() as client:
        page = previewed(client, "respond", {"output.number:/count": "7"})
        assert all(f"&#34;{name}&#34;" in page for name in ("Ada", "Bob", "Cy"))
        assert "3 answers are applied." in ended(client, page)
    assert sorted((each.name, each.count) for each in desk.results) == [
        ("Ada", 7), ("Bob", 7), ("Cy", 7),
    ]  # fmt: skip
    assert len(desk.calls) == 3


def test_other_failures_and_other_peoples_reviews_are_not_alike(desk):
    """A group has one call, one kind of failure, the same faulty places, and one's own labels."""
    for number, tenant in enumerate(["acme", "acme", "umbrella"]):
        desk.options["labels"] = {"tenant": tenant}
        desk.wait(f"t{number}")
    desk.options["labels"] = {"tenant": "acme"}
    desk.says = lambda params: "nothing"
    desk.wait("t3")
    with desk.client(authorize=lambda _: Access("ada", labels={"tenant": "acme"})) as client:
        page = previewed(client, "reject", {}, number=1)
        assert re.findall(r'<b dir="auto">(t\d)</b>', page) == ["t1", "t0"]


def test_a_double_click_answers_each_once(desk):
    """The same form sent twice is one batch."""
    for number in range(2):
        desk.wait(f"t{number}")
    with desk.client() as client:
        page = previewed(client, "approve", {})
        first, second = ended(client, page), ended(client, page)
    assert len(desk.calls) == 4
    assert "2 answers are applied." in first
    assert "2 answers are applied." in second


def test_several_questions_of_a_thread_are_answered_together(desk):
    """A thread runs once for all its answers: none of them is taken for stale."""
    desk.wait("t0", {"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"})
    with desk.client() as client:
        page = previewed(client, "respond", {"output.number:/count": "7"})
        assert "3 answers are applied." in ended(client, page)
    assert len(desk.results) == 3


@pytest.mark.parametrize(
    ("before", "after", "there", "made"),
    [
        ({"a": "x"}, {"a": "x y"}, {"a": "z"}, {"a": "z y"}),
        ({"a": "x"}, {"a": "y x"}, {"a": "z"}, {"a": "y z"}),
        ({"a": "x"}, {"a": "y"}, {"a": "x", "b": 1}, {"a": "y", "b": 1}),
        ({"a": "x"}, {"a": "y"}, {"a": "y"}, {"a": "y"}),
        ({"a": "x"}, {"a": "y"}, {"a": "z"}, None),
        ({"a": ""}, {"a": "y"}, {"a": "z"}, None),
        ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 2}),
        ({"a": 1}, {"a": 2}, {"a": True}, None),
        ({"a": 1}, {"a": 2}, {}, None),
        ({}, {"a": 2}, {}, {"a": 2}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1]}, {"a": [1, 2]}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 5]}, None),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1, 2]}, {"a": [1]}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": None}, None),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"c": 1}}, {"a": {"c": 1}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": "b"}, None),
        ({}, {"b": None}, [], None),
        ("x", "x!", "y", "y!"),
        ({"a": 1}, {"a": 1}, {"a": 5}, {"a": 5}),
    ],
)
def test_a_change_is_carried_over_exactly_or_not_at_all(before, after, there, made):
    """Equal places change alike, numbers are replaced, added words are added; the rest is left."""
    if made is None:
        with pytest.raises(NotYetError):
            carry(before, after, there)
    else:
        assert carry(before, after, there) == made


def test_what_is_unlike_the_others_is_marked_and_not_ticked(desk):
    """Of sixty alike all but the odd one are answered in one go; the tick can be set."""
    desk.options |= {"review": "always", "output": str}
    desk.says = lambda params: (
        f"dear {params.prompt}!!! ur parcel is LOST"
        if params.prompt == "n7"
        else f"Dear {params.prompt}, your parcel arrives on Tuesday."
    )
    for number in range(60):
        desk.wait(f"t{number}", {"prompt": f"n{number}"})
    with desk.client() as client:
        page = previewed(client, "approve", {})
        assert re.findall("unlike the others: (.*?)<", page) == ["output: other words"]
        shown = re.findall(r'<b dir="auto">(t\d+)</b>', page)
        assert shown[1] == "t7", "it comes after the one that was answered"
        assert "59 answers are applied." in ended(client, page)
    assert [review.thread_id for review in list_reviews(desk.graph)] == ["t7"]


ODD = {
    "few": ([{"a": 1}] * 4 + [{"a": "x"}], []),
    "a missing field": ([{"a": 1}] * 9 + [{}], ["a: missing"]),
    "another kind": ([{"a": 1}] * 9 + [{"a": "1"}], ["a: another kind"]),
    "a far number": ([{"a": n} for n in range(9)] + [{"a": 900}], ["a: far from the usual 4.5"]),
    "equal numbers": ([{"a": 1}] * 9 + [{"a": 2}], []),
    "a longer list": ([{"a": [1] * n} for n in (1, 2, 3) * 3] + [{"a": [1] * 99}], ["a: far"]),
    "all texts differ": ([{"a": text} for text in "qwertzuiop"], []),
    "a flag": ([{"a": True}] * 9 + [{"a": False}], ["a: another kind"]),
    "mixed flags": ([{"a": True}, {"a": False}] * 5, []),
    "null": ([{"a": "x"}] * 9 + [{"a": None}], ["a: missing"]),
    "no objects": (["x", 1, None, [], {}, True, 2.5], []),
}


@pytest.mark.parametrize("case", ODD)
def test_only_what_most_share_makes_one_odd(case):
    """A field that is missing, of another kind, or far away; never where all differ."""
    values, told = ODD[case]
    found = odd_ones(values)
    assert not any(found[:-1])
    assert [text[: len(want)] for text, want in zip(found[-1], told, strict=True)] == told
