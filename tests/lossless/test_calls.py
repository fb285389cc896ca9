"""Calls in the tags of open models, several answers, and the turns that a base model adds."""

import json

import pytest

from graph_retry.lossless import read as parse_output

ONE, TWO = {"name": "add", "arguments": {"a": 1}}, {"name": "sub", "arguments": {"b": 2}}
A, B = json.dumps(ONE), json.dumps(TWO)
PROTOCOLS = {
    "tool_call": "<tool_call>\n@\n</tool_call>\n<tool_call>\n#\n</tool_call>",
    "tool_call never closed": "<tool_call>\n@\n<tool_call>\n#",
    "function_call": "<function_call> @ <function_call> #",
    "tool_use": "<tool_use>@</tool_use><tool_use>#</tool_use>",
    "im_start": "<|im_start|>\n@\n<|im_start|>\n#\n<|im_start|>",
    "full-width": "<｜tool▁call▁begin｜>@<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>#",
    "functools": "functools[@, #]",
    "mistral": "[TOOL_CALLS] [@, #]",
    "mistral without a space": "[TOOL_CALLS][@, #]",
    "lines": "@\n#",
    "in a fence each, one of them never closed": (
        "First:\n```\n<function>\n@\n</function>\n\nThen:\n```\n<function>\n#\n</function>\n"
    ),
    "prose between": "First:\n<tool_call>@</tool_call>\nThen:\n<tool_call>#</tool_call>\nDone.",
}


@pytest.mark.parametrize("template", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_calls_are_a_list_where_a_list_is_wanted(template):
    """Each protocol is read losslessly, in the order of the text."""
    text = template.replace("@", A).replace("#", B.replace('"', "'"))
    assert parse_output(text, wants_list=True).value == [ONE, TWO]


def test_equal_calls_stay_two_and_one_call_is_a_list():
    """In tags, nothing is a repetition."""
    text = PROTOCOLS["tool_call"].replace("@", A).replace("#", A)
    assert parse_output(text, wants_list=True).value == [ONE, ONE]
    assert parse_output(f"<tool_call>{A}</tool_call>", wants_list=True).value == [ONE]
    assert parse_output(f"<tool_call>{A}</tool_call>", wants_list=False).value == ONE


def test_rows_of_lists_are_a_list_only_where_a_list_is_wanted():
    """Two lists in a row may be one list with a lost bracket."""
    assert parse_output("[1, 2]\n[3, 4]", wants_list=True).value == [[1, 2], [3, 4]]
    assert not parse_output("[1, 2]\n[3, 4]").ok
    assert parse_output(f"{A}\n{B}").value == [ONE, TWO]


@pytest.mark.parametrize("again", [(A, B), (A, B, A), (A, B, A, B), (B, B), (B, B, B, B)])
def test_a_list_that_begins_again_is_refused(again):
    """A model that writes its calls twice may mean them once; one call may be meant twice."""
    calls = [A, B, *again]
    text = "\n".join(f"<tool_call>{call}</tool_call>" for call in calls)
    failure = parse_output(text, wants_list=True).failure
    assert failure is not None
    assert failure["message"] == "Calls come again: write each call once."
    for values in ([A, B, B], [A, B, A], [A, A, A]):
        text = "\n".join(f"<tool_call>{call}</tool_call>" for call in values)
        assert len(parse_output(text, wants_list=True).value) == 3


def test_any_tag_stands_between_the_calls_of_a_list():
    """Models make up tags, with attributes and as declarations."""
    tag = '<?xml version="1.0"?>'
    text = f"{tag}\n{A}\n{tag}\n<call id='2'>{B}</call>"
    assert parse_output(text, wants_list=True).value == [ONE, TWO]


@pytest.mark.parametrize(
    ("turn", "calls"),
    [
        (f"<|im_start|>assistant\n{A}<|im_end|>", [ONE]),
        (f"<|im_start|>assistant\n[{A}]<|im_end|>", [ONE]),
        (f"<tool_call>{A}<tool_call>{B}<|im_end|>", [ONE, TWO]),
    ],
)
def test_calls_end_with_their_turn(turn, calls):
    """A base model makes up another turn without the results of its first calls."""
    text = f"{turn}<|im_start|>assistant\n<tool_call>{B}</tool_call>"
    assert parse_output(text, wants_list=True).value == calls


def test_an_answer_that_is_given_twice_is_one_where_one_is_wanted():
    """In tags, too; where a list may be wanted, it may be two of it."""
    text = f"<answer>{A}</answer>\n<answer>{A}</answer>"
    assert parse_output(text, wants_list=False).value == ONE
    assert not parse_output(text).ok


@pytest.mark.parametrize("prose", ['- `tags`: ["a"]', 'The tags are ["a"].'])
def test_a_part_of_the_answer_that_a_sentence_quotes_is_no_second_answer(prose):
    """Another value in such a place is one, and the text is refused."""
    text = f"{{'tags': ['a'], 'n': 1}}\n\nExplanation:\n{prose}"
    assert parse_output(text).value == {"tags": ["a"], "n": 1}
    assert not parse_output(text.replace("['a']", "['b']")).ok


@pytest.mark.parametrize("name", ["tool_call", "function_call", "lines"])
def test_one_broken_call_refuses_all_by_its_number(name):
    """No call is lost without a word."""
    text = PROTOCOLS[name].replace("@", A).replace("#", '{"name": "sub", "arguments": {"b": }}')
    failure = parse_output(text, wants_list=True).failure
    assert failure is not None
    assert failure["message"].startswith("Value 2 of 2 cannot be read: ")


def test_several_calls_where_one_is_wanted_are_counted():
    """The refusal says how many came."""
    text = PROTOCOLS["tool_call"].replace("@", A).replace("#", B)
    failure = parse_output(text, wants_list=False).failure
    assert failure is not None
    assert "There are 2 answers" in failure["message"]


def test_the_only_answer_that_fits_is_taken_and_told():
    """The caller's schema judges between answers that differ."""
    text = f"Example:\n```json\n{A}\n```\nResult:\n```json\n[1, 2]\n```"
    parsed = parse_output(text, fits=lambda value: isinstance(value, list))
    assert parsed.value == [1, 2]
    assert "chosen" in [repair["kind"] for repair in parsed.repairs]
    assert not parse_output(text, fits=lambda _: True).ok


@pytest.mark.parametrize(
    "turn",
    [
        "### Instruction:\nNow {x}\n### Response:\n@",
        "    ### Instruction:\n    Now {x}\n    ### Response:\n    @",
        "<|im_start|>assistant\n@",
        "</s>\n@",
        "Human: and this?\n@",
        "<|im_end|>\n<|im_start|>user\nMore: @",
    ],
)
def test_what_a_base_model_adds_ends_the_answer(turn):
    """The next turn of a conversation is no part of the answer."""
    text = f"{A}\n\n{turn}".replace("@", B)
    assert parse_output(text).value == ONE


@pytest.mark.parametrize(
    "code", ["1/6", "2 * 3", "total_price", "result1", "pending", "a if b else c"]
)
def test_arithmetic_and_variables_are_refused_with_a_reason(code):
    """The model is told to write the value."""
    failure = parse_output(f"{{'a': {code}, 'b': 1}}").failure
    assert failure is not None
    assert failure["kind"] in {"syntax", "ambiguous"}
    if code != "2 * 3":
        assert "write the value itself" in failure["message"]
