"""Shares of drawn documents that are read exactly, and how few are read as others."""

import json
import random
import warnings

import pytest
from jsonschema import Draft202012Validator

from bench import repair_combined, repair_damage, repair_edits
from graph_retry.output import parse_output


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python reads the damaged texts, too
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.slow
def test_hardly_any_damaged_document_is_read_as_another_one(seed):
    """A smaller draw of `python -m bench.repair_damage` and of `bench.repair_edits`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        table, wrong, _ = repair_damage.run(seed, 700)
        _, also_wrong, _ = repair_edits.run(seed, 1_000, length=40)
    assert len(wrong) <= 5, [case.text for case in wrong]
    assert len(also_wrong) <= 8, [case.text for case in also_wrong]
    assert sum(count for (_, result), count in table.items() if result == "exact") > 50


@pytest.mark.parametrize(
    "kinds", [1, 3, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 4, 5))]
)
def test_ordinary_deviations_are_read_however_many_meet(kinds):
    """Several notations and slips at once: nearly all are read exactly, and none as another."""
    results = [repair_combined.outcome(random.Random(seed), kinds) for seed in range(40)]
    assert results.count("wrong") == 0
    assert results.count("exact") >= 37


def test_a_refusal_of_two_readings_names_both():
    """So that a person sees what the choice would be."""
    failure = parse_output('{"a": "the x, "b": 2}').failure
    assert failure is not None
    assert "; or " in failure["message"]


ORDER = {
    "name": "Ada Lovelace",
    "tags": ["maths", "notes: engine"],
    "items": [{"sku": "A-1", "label": "Red, large", "qty": 2}],
    "note": 'the "first" one',
}
STRINGS = {"type": "array", "items": {"type": "string"}}
ITEM = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "label": {"type": "string"}, "qty": {}},
    "required": ["sku", "label", "qty"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": STRINGS,
        "items": {"type": "array", "items": ITEM},
        "note": {"type": "string"},
    },
    "required": [*ORDER],
}


def test_a_schema_tells_where_a_lost_quote_was():
    """Of the places of one lost quote, most are read if only one reading fits, and none wrongly."""
    fits = Draft202012Validator(SCHEMA).is_valid
    text = json.dumps(ORDER)
    places = [at for at, char in enumerate(text) if char == '"' and text[at - 1] != "\\"]
    damaged = [text[:at] + text[at + 1 :] for at in places]
    read = [parse_output(one, complete=True, wants_list=False, fits=fits) for one in damaged]
    alone = [parse_output(one, complete=True, wants_list=False) for one in damaged]
    assert all(one.value == ORDER for one in [*read, *alone] if one.ok)
    assert len(places) == 26
    assert (sum(one.ok for one in read), sum(one.ok for one in alone)) == (22, 21)
