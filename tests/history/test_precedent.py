"""Suggestions that people always approve, and the reviewer that would do it for them."""

import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import approve, edit, pending_reviews, reject, resume
from graph_retry.data import corrections_of, precedents
from tests.loops import Model, one_call, thread


def larger(error, attempt, params):
    """Suggest the larger model."""
    return {**params, "model": "large"}


def model(params):
    """Be right where the model is large; otherwise fail in one of two ways."""
    if params.get("model") == "large":
        return '{"n": 1}'
    return "no" if params["n"] % 3 == 2 else '{"n": "x"}'


@pytest.fixture(scope="module")
def decided():
    """Thirty reviews: one kind of failure always approved, the other edited in between."""
    graph = one_call("node", None, Model(model), InMemorySaver(), larger)
    for n in range(30):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
        decision = edit(model="large", n=0) if n == 20 else approve()
        resume(graph, thread(str(n)), decision)
    return graph


def test_a_row_of_approvals_is_a_precedent(decided):
    """Counts are by like failures; another decision ends a row."""
    found = precedents(corrections_of(decided), at_least=3)
    told = [(each.type, each.in_a_row, each.approved, each.decided) for each in found]
    assert told == [("ValidationError", 20, 20, 20), ("InvalidJSON", 3, 9, 10)]
    assert found[0].issues == (("/n", "int_parsing"),)
    assert "approved unchanged 20 times in a row (20 of 20 in all)" in str(found[0])
    assert [each.type for each in precedents(corrections_of(decided))] == ["ValidationError"]


def written(precedent, share):
    """Return the function that a precedent's code makes, as a person would paste it."""
    namespace = {"approve": approve}
    exec(precedent.code(share), namespace)
    return namespace["approve_count_invalid_schema"]


def test_the_code_decides_as_people_did(decided):
    """It approves the same suggestion for the same failure, and leaves all else to people."""
    (found,) = precedents(corrections_of(decided))
    graph = one_call(
        "node", None, Model(model), InMemorySaver(), larger, reviewer=written(found, 0.0)
    )
    for n in range(6):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
    waits = [n for n in range(6) if pending_reviews(graph, thread(str(n)))]
    assert waits == [2, 5]

    def other(error, attempt, params):
        return {**params, "model": "large"}

    graph = one_call(
        "node", None, Model(model), InMemorySaver(), other, reviewer=written(found, 0.0)
    )
    graph.invoke({"params": {"n": 0}}, thread())
    assert len(pending_reviews(graph, thread())) == 1  # nobody approved of this hook


def test_a_share_is_still_shown_to_people(decided):
    """Of many like failures people see about the share, chosen by the review alone."""
    (found,) = precedents(corrections_of(decided))
    graph = one_call(
        "node", None, Model(model), InMemorySaver(), larger, reviewer=written(found, 0.25)
    )
    for n in range(0, 120, 3):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
    waits = sum(bool(pending_reviews(graph, thread(str(n)))) for n in range(0, 120, 3))
    assert 1 <= waits <= 25
    for share in (-0.1, 2, "0.1"):
        with pytest.raises(ValueError, match="`share`: give a number from 0 to 1; not"):
            found.code(share)


def test_what_was_not_suggested_or_not_decided_by_people_is_no_precedent():
    """An approval without a suggestion calls again; agents and rejections are no precedents."""
    graph = one_call("node", None, Model(model), InMemorySaver())
    for n in (0, 1, 3):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
        resume(graph, thread(str(n)), approve())
    assert precedents(corrections_of(graph), at_least=2) == []
    graph = one_call("node", None, Model(model), InMemorySaver(), larger)
    for n in (0, 1, 3):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
        resume(graph, thread(str(n)), reject("no"))
    assert precedents(corrections_of(graph), at_least=2) == []
    with pytest.raises(ValueError, match="`at_least`: give a whole number from 2; not 1"):
        precedents([], at_least=1)


@pytest.mark.parametrize("many", [20, 21, 100, 101])
def test_the_code_also_decides_about_a_failure_with_many_issues(many):
    """The ledger keeps more issues than a review shows; those shown decide."""

    def many_wrong(params):
        return "[1]" if params.get("model") == "large" else json.dumps(["x"] * many)

    def one(**options):
        options["output"] = list[int]
        return one_call("node", None, Model(many_wrong), InMemorySaver(), larger, **options)

    graph = one()
    for n in range(2):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
        resume(graph, thread(str(n)), approve())
    (found,) = precedents(corrections_of(graph), at_least=2)
    graph = one(reviewer=written(found, 0.0))
    assert graph.invoke({"params": {"n": 0}}, thread())["output"] == [1]
