"""Validators that were written for something else: for a typed value, or to yield what is wrong."""

from dataclasses import dataclass

import jsonschema
import pytest

from graph_retry.output import build_validator


@dataclass
class Verdict:
    """A type that a validator may want."""

    ok: bool


def test_a_validator_of_a_typed_value_is_refused_when_it_is_given():
    """It would be given plain JSON, and each answer be refused for what the function cannot do."""

    def judge(verdict: Verdict) -> bool:
        return verdict.ok

    with pytest.raises(TypeError, match=r"give `Annotated\[Verdict, AfterValidator\(judge\)\]`"):
        build_validator(judge)


def test_what_yields_issues_is_read_as_far_as_it_goes():
    """A generator's own failure is an issue; the errors of `jsonschema` keep their paths."""
    schema = jsonschema.Draft202012Validator({"properties": {"a": {"type": "string"}}})
    (problem,) = build_validator(schema.iter_errors).check({"a": 1}).issues
    assert (problem["path"], problem["code"]) == ("/a", "type")

    def failing(value):
        yield "bad"
        raise KeyError("age")

    (problem,) = build_validator(failing).check({}).issues
    assert problem["message"] == "KeyError: 'age'"
