"""Validators that were written for something else: for a typed value, or with another library."""

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


def test_the_errors_of_another_library_are_issues_in_a_list():
    """Those of `jsonschema` keep their paths."""
    schema = jsonschema.Draft202012Validator({"properties": {"a": {"type": "string"}}})
    validator = build_validator(lambda value: list(schema.iter_errors(value)))
    (problem,) = validator.check({"a": 1}).issues
    assert (problem["path"], problem["code"]) == ("/a", "type")
