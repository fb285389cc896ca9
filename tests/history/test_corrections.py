"""What people made of outputs, as rows, as files of several formats, and back."""

import json
from collections import Counter
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langsmith.schemas import ExampleCreate
from pydantic_evals import Dataset

import graph_retry.data
from graph_retry import accept, approve, comment, edit, pending_reviews, reject, respond, resume
from graph_retry.data import (
    acorrections_of,
    aexport,
    corrections_of,
    export,
    import_corrections,
    precedents,
)
from graph_retry.threads import every_ledger, export_ledgers, rewind
from tests.history.conftest import ALLOWED, reply
from tests.loops import Model, answer, one_call, refused, thread

DECISIONS = {
    "supplied": (respond({"n": 7}), 0, ({"n": 7}, "person", True, True)),
    "overruled": (accept("as it is"), 0, ({"n": "many"}, "model", True, False)),
    "edited": (edit(n=2), 0, ({"n": 1}, "model", False, False)),
    "commented": (comment("a number"), 0, ({"n": 1}, "model", False, False)),
    "approved": (approve(), 0, (None, None, False, False)),
    "rejected": (reject("no use"), 0, (None, None, False, False)),
    "confirmed": (approve(), 1, ({"n": 1}, "model", True, False)),
}


def decided(form, mode, saver, decision, n=0, name="1", **options):
    """Run a call until it asks, and answer it."""
    options = {"allowed_decisions": ALLOWED, "review": "always", **options}
    graph = one_call(form, mode, Model(reply), saver, **options)
    mode.invoke(graph, {"params": {"n": n, "prompt": "How many?"}}, thread(name))
    rejects = decision["type"] == "reject" and form == "function"
    if rejects:
        with pytest.raises(Exception, match="cancelled"):
            answer(mode, graph, thread(name), {**decision, "by": "ada"})
    else:
        answer(mode, graph, thread(name), {**decision, "by": "ada"})
    return graph


@pytest.mark.parametrize("how", DECISIONS)
def test_a_row_says_what_was_decided_and_what_counted(form, mode, how):
    """Each decision is a row: before, after, who, how, the value, and whether it is a pair."""
    decision, n, expected = DECISIONS[how]
    graph = decided(form, mode, InMemorySaver(), decision, n)
    if how in ("edited", "commented"):  # a valid output waits for approval
        assert next(iter(corrections_of(graph)))["value_from"] is None
        answer(mode, graph, thread(), approve())
        expected = (*expected[:2], True, expected[3])
    row = next(iter(corrections_of(graph)))
    assert (row["how"], row["role"], row["by"], row["thread"]) == (how, "human", "ada", "1")
    assert (row["value"], row["value_from"], row["vouched"], row["pair"]) == expected
    assert (row["params"], row["call"]) == ({"n": n, "prompt": "How many?"}, "count")
    assert row["output"] == ({"n": 1} if n else {"n": "many"})
    assert row["message"] == decision.get("message")
    assert (row["failure"] is None) == bool(n)
    changed = {"edited": {"n": 2, "prompt": "How many?"}, "approved": row["params"]}
    if how in changed:
        assert row["revised"] == changed[how]


def test_a_suggestion_that_was_taken_is_named():
    """The ledger tells whose params the review suggested, taken or changed."""

    def hook(error, attempt, params):
        return {**params, "n": params["n"] - 1}

    graph = one_call("node", None, Model(reply), InMemorySaver(), hook)
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), approve())
    resume(graph, thread(), edit(n=1))
    taken, changed = corrections_of(graph)
    assert (taken["how"], taken["suggested_by"], taken["revised"]) == (
        "approved",
        "hook",
        {"n": -1},
    )
    assert (changed["how"], changed["suggested_by"], changed["revised"]) == (
        "edited",
        "hook",
        {"n": 1},
    )


async def test_async_code_reads_and_writes_the_same(tmp_path):
    """The async twins give the rows and the file of the sync ones."""
    graph = one_call("node", None, Model(reply), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), respond({"n": 3}))
    rows = [row async for row in acorrections_of(graph)]
    assert rows == list(corrections_of(graph))
    wrote = await aexport(graph, tmp_path / "a.jsonl")
    assert export(graph, tmp_path / "b.jsonl").left_out == wrote.left_out
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()


def test_every_storage_lists_its_threads(mode, checkpointer):
    """All threads of a graph and of its checkpointer alone are found, in either mode."""
    graph = one_call("node", mode, Model(reply), checkpointer)
    for name in "abc":
        mode.invoke(graph, {"params": {"n": 0, "of": name}}, thread(name))
        answer(mode, graph, thread(name), respond({"n": 3}))

    for source in (graph, checkpointer):
        rows = mode.call(graph_retry.data, "corrections_of", source)
        assert [row["thread"] for row in rows] == ["a", "b", "c"]


def test_rows_come_back_equal(many, tmp_path):
    """What is exported and imported is the same, and can be exported again."""
    rows = list(corrections_of(many))
    wrote = export(many, tmp_path / "rows.jsonl")
    assert (wrote.written, wrote.left_out) == ({str(tmp_path / "rows.jsonl"): 40}, Counter())
    assert list(import_corrections(tmp_path / "rows.jsonl")) == rows
    export(import_corrections(tmp_path / "rows.jsonl"), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "rows.jsonl").read_text()


def test_threads_are_selected_whatever_the_source_is(many, tmp_path):
    """A storage, ledgers, rows and a file give the same rows for the same threads."""
    wanted = ["0", "3"]
    rows = list(corrections_of(many, threads=iter(wanted)))
    assert {row["thread"] for row in rows} == set(wanted)
    export_ledgers(every_ledger(many), tmp_path / "ledgers.jsonl")
    for source in (every_ledger(many), corrections_of(many), tmp_path / "ledgers.jsonl"):
        assert list(corrections_of(source, threads=wanted)) == rows


def test_a_single_ledger_is_a_source(many):
    """It need not be put into a list."""
    ledger = next(every_ledger(many))
    assert list(every_ledger(ledger)) == [ledger]
    assert list(corrections_of(ledger)) == list(corrections_of([ledger]))


def test_ledgers_on_disk_give_the_same_rows(many, tmp_path):
    """An exported ledger knows its thread, so its rows are those of the storage."""
    export_ledgers(every_ledger(many), tmp_path / "ledgers.jsonl")
    assert list(corrections_of(tmp_path / "ledgers.jsonl")) == list(corrections_of(many))


def test_chats_have_the_outputs_that_people_supplied(many, tmp_path):
    """OpenAI's format has messages alone: the call's own, then what the person wrote."""
    wrote = export(many, tmp_path / "chat.jsonl", "openai")
    chats = [json.loads(line) for line in (tmp_path / "chat.jsonl").read_text().splitlines()]
    assert wrote.left_out == {"no person supplied its output": 30}
    assert {frozenset(chat) for chat in chats} == {frozenset({"messages"})}
    by_roles = Counter(tuple(turn["role"] for turn in chat["messages"]) for chat in chats)
    assert by_roles == {("system", "user", "assistant"): 5, ("user", "assistant"): 5}
    answers = {json.loads(chat["messages"][-1]["content"])["n"] for chat in chats}
    assert answers == set(range(0, 40, 4))


def test_only_honest_pairs_are_pairs(many, tmp_path):
    """After an edit or a comment the params differ: such rows are left out, and it is said why."""
    wrote = export(many, tmp_path / "pairs.jsonl", "preference")
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert len(pairs) == 10
    assert wrote.left_out == {
        "no pair: its params were changed": 20,
        "no pair: no person replaced its output": 10,
    }
    for pair in pairs:
        assert pair["non_preferred_output"] == [{"role": "assistant", "content": '{"n": "many"}'}]
        assert pair["preferred_output"][0]["content"] != pair["non_preferred_output"][0]["content"]
        assert pair["input"]["messages"][-1]["role"] == "user"


def test_an_output_supplied_unchanged_is_no_pair(tmp_path):
    """A person who supplies what the model gave prefers nothing."""
    graph = one_call("node", None, Model(reply), InMemorySaver(), review="always")
    graph.invoke({"params": {"n": 1}}, thread())
    resume(graph, thread(), respond({"n": 1}))
    (row,) = corrections_of(graph)
    assert (row["how"], row["vouched"], row["pair"]) == ("supplied", True, False)


def test_evaluation_cases_are_read_by_pydantic_evals(many, tmp_path):
    """Only what a person vouched for is expected; the rest of the row rides in the metadata."""
    export(many, tmp_path / "cases.json", "pydantic-evals")
    cases = Dataset[Any, Any, Any].from_file(tmp_path / "cases.json").cases
    rows = {row["id"]: row for row in corrections_of(many)}
    assert len(cases) == 40
    for case in cases:
        row = rows[case.name]
        assert (case.inputs, case.expected_output) == (
            row["params"],
            row["value"] if row["vouched"] else None,
        )
        assert {"value": case.expected_output, **case.metadata, "params": case.inputs} == row


def test_examples_are_read_by_langsmith(many, tmp_path):
    """Each line is an example of LangSmith's own schema, with its part of the split."""
    export(many, tmp_path / "x.jsonl", "langsmith", split={"train": 0.5, "test": 0.5})
    seen = set()
    for part in ("train", "test"):
        for line in (tmp_path / f"x.{part}.jsonl").read_text().splitlines():
            given = json.loads(line)
            outputs = given.pop("outputs")
            example = ExampleCreate.model_validate({**given, "reference_outputs": outputs})
            sent = example.model_dump(mode="json", by_alias=True)
            assert {**given, "outputs": outputs}.items() <= sent.items()
            assert example.split == part
            assert (example.reference_outputs is not None) == example.metadata["vouched"]
            seen.add(example.id)
    assert len(seen) == 40


def test_no_thread_is_in_two_parts(many, tmp_path):
    """A thread's id decides its part; what is exported beside it changes nothing."""
    shares = {"train": 0.6, "dev": 0.2, "test": 0.2}

    def parts(source):
        export(source, tmp_path / "s.jsonl", split=shares)
        return {
            part: {row["thread"] for row in import_corrections(tmp_path / f"s.{part}.jsonl")}
            for part in shares
        }

    whole = parts(many)
    assert sum(map(len, whole.values())) == len(set().union(*whole.values())) == 40
    assert all(whole.values())
    half = parts([row for row in corrections_of(many) if int(row["thread"]) % 2])
    assert all(half[part] <= whole[part] for part in shares)


def test_the_same_said_twice_is_one_example(tmp_path):
    """Each decision has its row. A data set has equal ones once. A fork counts if asked for."""
    saver = InMemorySaver()
    graph = one_call("node", None, Model(reply), saver)
    for name in "ab":
        graph.invoke({"params": {"n": 0}}, thread(name))
        resume(graph, thread(name), respond({"n": 3}))
    rows = export(graph, tmp_path / "rows.jsonl")
    assert (sum(rows.written.values()), rows.left_out) == (2, {})
    again = export(import_corrections(tmp_path / "rows.jsonl"), tmp_path / "again.jsonl")
    assert sum(again.written.values()) == 2
    wrote = export(graph, tmp_path / "cases.json", "pydantic-evals")
    assert (sum(wrote.written.values()), wrote.left_out) == (1, {"equal to an earlier row": 1})
    rewind(graph, thread("a"), attempt=1, decision=respond({"n": 4}))
    assert [row["value"] for row in corrections_of(saver)] == [{"n": 4}, {"n": 3}]
    both = list(corrections_of(saver, left_behind=True))
    assert sorted(row["value"]["n"] for row in both) == [3, 3, 4]


def test_equal_calls_have_a_row_for_each_decision():
    """Three equal approvals of a suggestion are three rows, and a precedent."""

    def ask(params):
        if params["n"] < 1:
            raise ValueError("too small")
        return params["n"]

    graph = one_call("function", None, ask, InMemorySaver(), lambda *_: {"n": 1}, output=None)
    for name in "abc":
        graph.invoke({"params": {"n": 0}}, thread(name))
        resume(graph, thread(name), approve())

    rows = list(corrections_of(graph))

    assert [(row["how"], row["suggested_by"] is not None) for row in rows] == [
        ("approved", True)
    ] * 3
    assert [each.in_a_row for each in precedents(rows, at_least=3)] == [3]


def test_a_decision_of_an_unknown_kind_has_its_own_word():
    """A newer version, or a user, may know more kinds: none of their decisions is dropped."""
    graph = one_call("node", None, Model(reply), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), respond({"n": 3}))
    (ledger,) = every_ledger(graph)
    ledger.attempts[0]["decision"]["type"] = "delegate"

    assert [row["how"] for row in corrections_of(ledger)] == ["delegate"]


SELECTIONS = {
    "how": ({"how": ["supplied", "overruled"]}, 20),
    "labels": ({"labels": {"tenant": "acme"}}, 40),
    "other labels": ({"labels": {"tenant": "else"}}, 0),
    "calls": ({"calls": ["count"]}, 40),
    "threads": ({"threads": ["1", "2"]}, 2),
    "since": ({"since": "2999"}, 0),
    "until": ({"until": "2999"}, 40),
    "roles": ({"roles": ["agent"]}, 0),
    "where": ({"where": lambda row: row["thread"] == "3"}, 1),
}


@pytest.mark.parametrize(
    ("moment", "wanted"), [("2030-05-01T12:00+02:00", 1), ("2030-05-01T10:30", 0), ("2030-05", 1)]
)
def test_moments_are_compared_whatever_their_offset(many, moment, wanted):
    """A moment without an offset is in UTC; a decision of an unknown time is in no bounds."""
    row = next(iter(corrections_of(many)))
    noon = {**row, "at": "2030-05-01T10:15:00.000+00:00"}
    assert len(list(corrections_of([noon], since=moment))) == wanted
    assert len(list(corrections_of([noon], until=moment))) == 1 - wanted
    assert not list(corrections_of([{**row, "at": None}], until=moment))
    with pytest.raises(ValueError, match="`since` is 'yesterday': give a time in ISO 8601"):
        list(corrections_of([noon], since="yesterday"))


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_selects(many, name):
    """Each way to select leaves out what does not fit."""
    selection, expected = SELECTIONS[name]
    assert len(list(corrections_of(many, **selection))) == expected


def test_a_name_that_no_call_has_is_refused(many):
    """An empty list would look like a result."""
    with pytest.raises(ValueError, match=r"has `aks`, but no call of"):
        list(corrections_of(many, calls=["aks"]))


def test_what_is_no_source_is_told():
    """A graph without a checkpointer and a number are named; a list of something else, too."""
    for source in (one_call("node", None, Model(), None), 3, [3]):
        with pytest.raises(TypeError, match="`source`"):
            list(corrections_of(source))


def test_a_text_output_stays_text():
    """What was never read as JSON is not read as JSON by the export either."""
    graph = one_call(
        "node", None, lambda params: "42", InMemorySaver(), output=str, review="always"
    )
    graph.invoke({"params": {}}, thread())
    resume(graph, thread(), approve())
    (row,) = corrections_of(graph)
    assert (row["output"], row["value"], row["vouched"]) == ("42", "42", True)


def test_an_answer_that_was_refused_is_no_correction(mode):
    """Only what was decided counts."""
    graph = one_call("node", mode, Model(reply), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    refused(mode, graph, thread(), respond({"n": "x"}))
    assert list(corrections_of(graph.checkpointer)) == []
    assert len(pending_reviews(graph, thread())) == 1
