"""Functions as validators: what each kind of answer means, and what is too unclear to mean it."""

import asyncio
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from pydantic import TypeAdapter

from graph_retry import AnswerRefused, apending_reviews, aresume, respond
from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError
from graph_retry.output import build_validator
from tests.loops import Model, one_call, thread

RECORD = {"path": "/a", "message": "bad", "code": "odd", "expected": "x", "received": None}
FOUND = [("/a", "bad", "odd")]


def raises(error: BaseException):
    """Make a validator that raises `error`."""

    def validator(value: Any) -> Any:
        raise error

    return validator


@dataclass
class Verdict:
    """A verdict as some validators have it."""

    ok: bool
    reason: str = ""


NamedBool = type("bool", (), {"__module__": "numpy"})


class Scalar:
    """One value of NumPy's."""

    shape = ()

    def __init__(self, value):
        self.item = lambda: value


ACCEPTED = [
    pytest.param({"a": 1}, None, {"a": 1}, id="none"),
    pytest.param({"a": 1}, True, {"a": 1}, id="true"),
    pytest.param(False, True, False, id="true-for-a-boolean"),
    pytest.param({"a": 1}, [], {"a": 1}, id="no-issues"),
    pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="new-value"),
    pytest.param({"a": 1}, {"b": 2, "a": "x"}, {"b": 2, "a": "x"}, id="new-value-with-more"),
    pytest.param({"a": 1, "b": 2}, {"a": 1}, {"a": 1}, id="new-value-with-less"),
    pytest.param({"a": 1}, 0, 0, id="new-falsy-value"),
    pytest.param([3], [], [3], id="no-issues-for-a-list"),
    pytest.param([3, 1], {"ok": True, "data": [1, 3]}, [1, 3], id="new-list"),
    pytest.param(["a"], ["a"], ["a"], id="equal-list"),
    pytest.param([], [], [], id="equal-empty-list"),
    pytest.param([RECORD], [RECORD], [RECORD], id="equal-list-of-records"),
    pytest.param(" a ", "a", "a", id="new-text"),
    pytest.param({"a": 1}, {"ok": True}, {"a": 1}, id="verdict"),
    pytest.param({"a": 1}, {"ok": True, "data": [], "errors": []}, [], id="verdict-with-list"),
    pytest.param({"ok": False}, {"ok": False}, {"ok": False}, id="equal-to-a-verdict"),
    pytest.param({"a": 1}, {"ok": True, "data": None}, None, id="verdict-with-null"),
    pytest.param({"a": 1}, {"success": True, "data": {"n": 1}}, {"n": 1}, id="zod-accepts"),
    pytest.param({"a": 1}, {"valid": True, "errors": None}, {"a": 1}, id="ajv-accepts"),
    pytest.param({"ok": 1}, {"success": True, "data": {"ok": True}}, {"ok": True}, id="of-ok"),
    pytest.param({"ok": 1}, {"ok": True, "data": {"ok": True}}, {"ok": True}, id="of-ok-by-ok"),
    pytest.param({"errors": [1]}, {"errors": []}, {"errors": []}, id="data-with-errors"),
]
REFUSED = [
    pytest.param({}, ValueError("bad"), [("", "bad", "value_error")], id="exception"),
    pytest.param(
        {},
        [ValueError("bad"), "odd"],
        [("", "bad", "value_error"), ("", "odd", "refused")],
        id="exceptions",
    ),
    pytest.param({}, [""], [("", "the validator refused the value", "refused")], id="empty"),
    pytest.param({}, False, [("", "the validator refused the value", "refused")], id="false"),
    pytest.param(False, False, [("", "the validator refused the value", "refused")], id="boolean"),
    pytest.param({}, ["bad"], [("", "bad", "refused")], id="text"),
    pytest.param({}, [RECORD], FOUND, id="record"),
    pytest.param([1], [RECORD], FOUND, id="record-for-a-list"),
    pytest.param(["a"], ["bad"], [("", "bad", "refused")], id="text-for-a-list"),
    pytest.param("a", {"ok": False, "errors": "bad"}, [("", "bad", "refused")], id="text-verdict"),
    pytest.param({}, [{"message": "bad"}], [("", "bad", "refused")], id="message-alone"),
    pytest.param(
        {}, {"ok": False, "errors": ["bad", RECORD]}, [("", "bad", "refused"), *FOUND], id="verdict"
    ),
    pytest.param({}, {"success": False, "errors": ["bad"]}, [("", "bad", "refused")], id="success"),
    pytest.param({}, {"valid": False, "errors": [RECORD]}, FOUND, id="valid"),
    pytest.param({}, {"valid": False, "issues": [RECORD]}, FOUND, id="issues"),
    pytest.param({"a": 1}, {"success": False, "error": {"issues": [RECORD]}}, FOUND, id="zod"),
    pytest.param(
        {},
        {"ok": False, "error": KeyError("a")},
        [("", "KeyError: 'a'", "unexpected_error")],
        id="error",
    ),
    pytest.param(
        {"errors": [1]},
        {"success": False, "errors": ["bad"]},
        [("", "bad", "refused")],
        id="field-named-errors",
    ),
    pytest.param(
        {}, {"ok": False}, [("", "the validator refused the value", "refused")], id="bare"
    ),
    pytest.param(
        {}, [{"path": ["a/b", 0], "message": "m"}], [("/a~1b/0", "m", "refused")], id="path-parts"
    ),
    pytest.param(
        {}, [{"path": "name", "message": "m"}], [("/name", "m", "refused")], id="path-name"
    ),
    pytest.param(
        {},
        {"valid": False, "errors": [{"instancePath": "/a/0", "message": "m", "keyword": "type"}]},
        [("/a/0", "m", "refused")],
        id="ajv",
    ),
    *[
        pytest.param(value, [{"path": path, "message": "m"}], [(found, "m", "refused")], id=path)
        for value, path, found in [
            ({}, "a.b", "/a/b"),
            ({"a": {"b": 1}}, "a.b", "/a/b"),
            ({"a.b": 1}, "a.b", "/a.b"),
            ({}, "rows.0.price", "/rows/0/price"),
            ({}, "rows[0].price", "/rows/0/price"),
            ({}, "$.rows[1]", "/rows/1"),
            ({}, "$", ""),
            ({}, "rows/0", "/rows/0"),
            ({}, "/a.b", "/a.b"),
        ]
    ],
]


@pytest.mark.parametrize(("value", "answer", "expected"), ACCEPTED)
def test_an_answer_that_accepts(value, answer, expected):
    """Nothing, `True`, no issues, a verdict or a new value: each is read as what it says."""
    validator = build_validator(lambda given: answer)
    checked = validator.check(value)

    assert checked.issues == []
    assert type(checked.value) is type(expected)
    assert checked.value == checked.jsonable == validator.rebuild(checked.jsonable) == expected


@pytest.mark.parametrize(("value", "answer", "expected"), REFUSED)
def test_an_answer_that_refuses(value, answer, expected):
    """`False`, a list of issues, a negative verdict: each becomes issues."""
    issues = build_validator(lambda given: answer).check(value).issues
    assert [(issue["path"], issue["message"], issue["code"]) for issue in issues] == expected


@pytest.mark.parametrize(
    ("value", "answer", "named"),
    [
        pytest.param([3, 1], [1, 3], "as an issue", id="new-list"),
        pytest.param({}, [{"row": 1}], "as an issue", id="rows-for-a-dict"),
        pytest.param({}, [1], "as an issue", id="numbers-for-a-dict"),
        pytest.param({}, {"ok": False, "errors": [3]}, "as an issue", id="number-as-error"),
        pytest.param({"a": 1}, {"a": {1}}, "no plain JSON form", id="set-inside"),
        pytest.param([1], (1,), r"\(tuple\), which may mean several", id="tuple"),
        pytest.param({}, object(), "no plain JSON form", id="object"),
        pytest.param({}, Verdict(True), "no plain JSON form", id="verdict-as-an-object"),
        pytest.param({}, (False, "bad"), r"\(tuple\), which may mean several.*a bool", id="pair"),
        pytest.param({}, {"bad"}, "no plain JSON form", id="set"),
        pytest.param({}, (text for text in ["bad"]), "no plain JSON form", id="generator"),
        pytest.param({}, Scalar(False), "no plain JSON form", id="numpy"),
        pytest.param({}, NamedBool(), "accepted a `numpy.bool`", id="named-like-a-builtin"),
        pytest.param({}, "bad", "may mean several things: return a bool", id="bare-text"),
        pytest.param({}, "", "may mean several things: return a bool", id="empty-text"),
        pytest.param(
            {}, {"ok": False, "reason": "bad"}, "a dict with `ok` and `reason`", id="more"
        ),
        pytest.param({}, {"ok": True, "rows": 1}, "a dict with `ok` and `rows`", id="rows"),
        pytest.param({"a": 1}, {}, "is no verdict", id="errors-by-field-none"),
        pytest.param({"a": 1, "b": 2}, {"a": ["low"]}, "is no verdict", id="errors-by-field"),
        pytest.param({"a": 1}, {"passed": False}, "is no verdict", id="other-word"),
        pytest.param({}, {"isValid": False}, "is no verdict", id="other-word-for-an-empty-dict"),
        pytest.param({"a": 1}, {"status": "error", "message": "m"}, "is no verdict", id="status"),
        pytest.param({"status": 1, "n": 2}, {"status": "no"}, "is no verdict", id="field-status"),
        pytest.param([1], {"passed": False}, "is no verdict", id="other-word-for-a-list"),
        pytest.param("a", {"passed": False}, "is no verdict", id="other-word-for-a-text"),
        pytest.param({"a": 1}, {"errors": ["bad"]}, "`errors`, but without", id="reasons-alone"),
        pytest.param({"a": 1}, {"data": 1, "error": None}, "`error`, but without", id="no-state"),
        pytest.param({"a": 1}, {"a": 1, "valid": False}, "`valid` and `a`", id="marked-value"),
        pytest.param({"a": 1}, {"ok": True, "valid": True}, "`ok` and `valid`", id="two-states"),
        pytest.param({"a": 1}, {"ok": True, "errors": ["bad"]}, "together with", id="yes-and-no"),
        pytest.param({"a": 1}, {"valid": None, "errors": ["b"]}, "`valid` null", id="null"),
        pytest.param({"ok": 1}, {"ok": False, "reason": "b"}, "`ok` and `reason`", id="field-ok"),
        pytest.param({"ok": 1, "n": 2}, {"ok": False, "n": 2}, "value has as well", id="changed"),
        pytest.param({"valid": True}, {"valid": False}, "value has as well", id="field-valid"),
        pytest.param({}, {"ok": "yes"}, 'a dict with `ok` "yes"', id="text-ok"),
        pytest.param({}, {"ok": 0, "errors": ["bad"]}, "a dict with `ok` 0", id="number-ok"),
        pytest.param({}, [{"msg": "bad"}], "as an issue", id="pydantic"),
        pytest.param({}, {"ok": False, "errors": {"age": "low"}}, "as an issue", id="by-field"),
    ],
)
def test_an_answer_that_no_rule_covers_is_refused(value, answer, named):
    """The error shows what came and how to say it clearly."""
    with pytest.raises(TypeError, match=named):
        build_validator(lambda given: answer).check(value)


@pytest.mark.parametrize("form", ["function", "node"])
@pytest.mark.parametrize("no", [{"success": False, "errors": ["low"]}, {"valid": False}])
def test_a_refusal_ends_no_call(form, no):
    """In both forms a person is asked, and the refusal is no output."""
    graph = one_call(
        form, None, Model(lambda params: '{"n": 0}'), InMemorySaver(), output=lambda v: no
    )
    asked = graph.invoke({"params": {}}, thread())
    assert "__interrupt__" in asked
    assert asked.get("output") is None


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("too short"), "value_error", "too short"),
        (AssertionError(), "value_error", "the validator refused the value"),
        (KeyError("age"), "unexpected_error", "KeyError: 'age'"),
        (RecursionError("deep"), "unexpected_error", "RecursionError: deep"),
        (ExceptionGroup("all", [ValueError("too short")]), "value_error", "too short"),
        (jsonschema.ValidationError("odd", path=["a", 0]), "schema", "odd"),
    ],
)
def test_what_a_validator_raises_is_an_issue(error, code, message):
    """An exception fails the attempt and says why."""
    issues = build_validator(raises(error)).check({}).issues
    assert [(issue["code"], issue["message"]) for issue in issues] == [(code, message)]


@pytest.mark.parametrize(
    ("judge", "path", "code"),
    [
        (TypeAdapter(dict[str, int]).validate_python, "/a", "int_parsing"),
        (lambda value: jsonschema.validate(value, {"required": ["a", "b"]}), "/b", "required"),
    ],
)
def test_the_issues_of_a_validation_inside_are_kept(judge, path, code):
    """An error of pydantic or jsonschema raised in a function gives its own paths."""
    issues = build_validator(judge).check({"a": "x"}).issues
    assert [(issue["path"], issue["code"]) for issue in issues] == [(path, code)]


@pytest.mark.parametrize("error", [GraphInterrupt(), KeyboardInterrupt(), asyncio.CancelledError()])
def test_control_flow_passes_through(error):
    """A question to a person, Ctrl-C and cancellation are not validation failures."""
    with pytest.raises(type(error)):
        build_validator(raises(error)).check({})


def test_a_validator_gets_a_copy():
    """A validator that changes its argument changes nothing unless it returns it."""

    def mutate(value: dict[str, Any]) -> None:
        value["a"].append(2)

    def normalise(value: dict[str, Any]) -> dict[str, Any]:
        mutate(value)
        return value

    value = {"a": [1]}
    odd = {"a": [float("nan")]}
    assert build_validator(mutate).check(value).value == {"a": [1]}
    assert build_validator(normalise).check(value).value == {"a": [1, 2]}
    assert build_validator(lambda v: v.update(ok=True) or v).check({}).value == {"ok": True}
    assert value == {"a": [1]}
    assert not build_validator(mutate).check(odd).ok
    assert len(odd["a"]) == 1


async def judge_later(value: Any) -> bool:
    """Judge asynchronously."""
    return value["n"] == 1


class JudgeLater:
    async def __call__(self, value: Any) -> bool:
        return value["n"] == 1


@pytest.mark.parametrize("function", [judge_later, JudgeLater()])
async def test_an_async_function_is_awaited(function):
    """In an async run; a sync one says what to do instead."""
    validator = build_validator(function)
    assert (await validator.acheck({"n": 1})).ok
    assert not (await validator.acheck({"n": 2})).ok
    with pytest.raises(AsyncUnderSyncError, match="is async but the graph runs synchronously"):
        validator.check({"n": 1})


def test_async_validators_judge_outputs_and_answers():
    """Under `ainvoke`: what the model gave, and what a person supplies."""

    async def run():
        graph = one_call(
            "node", None, Model(lambda params: '{"n": 0}'), InMemorySaver(), output=judge_later
        )
        await graph.ainvoke({"params": {}}, thread())
        with pytest.raises(AnswerRefused, match="not valid"):
            await aresume(graph, thread(), respond({"n": 2}))
        (review,) = await apending_reviews(graph, thread())
        assert "not valid" in review.problem
        return await aresume(graph, thread(), respond({"n": 1}))

    assert asyncio.run(run())["output"] == {"n": 1}


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda: True, "must take one value"),
        (lambda value, schema: True, "must take one value"),
    ],
)
def test_a_function_that_cannot_be_called_fails_at_once(function, named):
    """A wrong signature is found when the validator is built."""
    with pytest.raises(TypeError, match=named):
        build_validator(function)


def test_a_builtin_without_a_signature_is_taken():
    """`max` and its like say nothing about their arguments."""
    assert build_validator(max).check([1, 3]).value == 3


@pytest.mark.parametrize(
    "answer", [{"ok": False, "hopeless": "yes"}, [{"message": "no", "hopeless": 1}]]
)
def test_hopeless_is_a_boolean(answer):
    """Anything that is no boolean is a mistake in the validator, and is named."""
    with pytest.raises(TypeError, match="as `hopeless`: give True or False"):
        build_validator(lambda value: answer).check({"a": 1})
