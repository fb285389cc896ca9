"""The work of a type's recursive unions is counted before it is done."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from graph_retry._core.output.types.union_work import UnionWork
from graph_retry.output import build_validator


class Plus(BaseModel):
    """One of two nodes that hold the same field."""

    x: Plus | Minus | int


class Minus(BaseModel):
    """The other one, with a field that may be missing."""

    x: Plus | Minus | int
    y: int = 0


class Items(TypedDict):
    """A node that holds lists of itself."""

    x: list[Items | Rows | int]


class Rows(TypedDict):
    """A node that holds mappings of itself."""

    x: dict[str, Items | Rows | int] | list[Rows | Items]


class Cell(BaseModel):
    """A chain whose union has one branch with a part below."""

    x: Cell | End | None = None


class End(BaseModel):
    """The end of a chain."""

    stop: bool


class Not(BaseModel):
    """A node that is chosen by its tag."""

    kind: Literal["not"]
    x: Tagged | int


class Neg(BaseModel):
    """Another node that is chosen by its tag."""

    kind: Literal["neg"]
    x: Tagged | int


Tagged = Annotated[Not | Neg, Field(discriminator="kind")]


def nested(levels, innermost=1, **beside):
    """Make a value of so many levels."""
    for _ in range(levels):
        innermost = {"x": innermost, **beside}
    return innermost


def in_lists(levels):
    """Make a value whose levels are lists as well."""
    value = 1
    for _ in range(levels):
        value = {"x": [value]}
    return value


def counted(output, value):
    """Return the steps that are counted for a value."""
    return UnionWork(TypeAdapter(output).core_schema)._counted(value)[0]


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (Plus | Minus, nested(60, "no")),
        (Plus | Minus, nested(60)),
        (Plus, nested(60)),
        (list[Plus | Minus], [nested(60)]),
        (Items | Rows, in_lists(40)),
    ],
    ids=["wrong", "right", "model", "list", "dict"],
)
def test_a_recursive_union_that_would_take_for_ever_is_an_issue(output, value):
    """Pydantic alone would need more than 10 to the 12 validations."""
    (issue,) = build_validator(output).check(value).issues
    assert issue["code"] == "too_much_work"
    assert "discriminator" in issue["message"]


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (Plus | Minus, nested(10)),
        (list[Plus | Minus], [nested(3) for _ in range(2_000)]),
        (Items | Rows, in_lists(7)),
        (Cell, nested(90, None)),
        (Tagged, nested(60, kind="neg")),
    ],
    ids=["ten levels", "wide", "lists", "one branch", "tagged"],
)
def test_an_ordinary_value_is_judged(output, value):
    """Levels that do not double are not counted as if they did."""
    assert "too_much_work" not in {
        one["code"] for one in build_validator(output).check(value).issues
    }


def test_counting_is_linear_and_follows_the_validations():
    """The count doubles as pydantic's validations do, and takes a step for each level."""
    double = [counted(Plus | Minus, nested(levels)) for levels in (4, 5, 6, 7)]
    assert all(1.9 < after / before < 2.3 for before, after in itertools.pairwise(double))
    chain = [counted(Cell, nested(levels, None)) for levels in (20, 40, 80)]
    assert all(after < 2.2 * before for before, after in itertools.pairwise(chain))
