"""Calls in the notations of open models, beside prose, cut off, several, and inside documents."""

import json
import re

import pytest

from graph_retry.lossless import read as parse_output
from graph_retry.lossless.protocols import PROTOCOLS

NAME = "get_weather"
TYPES = {"city": str, "days": int, "code": str, "tags": list}
ARGUMENTS = [
    {"city": "Oslo"},
    {"city": "Oslo", "days": 3},
    {"city": "São Paulo, {SP}", "code": "007"},
    {"city": "12", "days": 12},
    {"city": "two\nlines <b>", "tags": ["a", {"b": None}]},
]


def document(opening, closing=""):
    """Write a call with its arguments as one JSON document."""
    return lambda name, given: opening.replace("@", name) + json.dumps(given) + closing


def elements(opening, one, closing):
    """Write a call with an element for each parameter; text stands as it is."""

    def write(name, given):
        parts = [
            one.replace("@", key).replace(
                "#", value if isinstance(value, str) else json.dumps(value)
            )
            for key, value in given.items()
        ]
        return opening.replace("@", name) + "".join(parts) + closing

    return write


def keywords(opening, closing):
    """Write a call as Python does."""

    def write(name, given):
        return (
            opening + name + "(" + ", ".join(f"{k}={v!r}" for k, v in given.items()) + ")" + closing
        )

    return write


def gemma(name, given):
    """Write a call as Gemma 4 does, whose strings stand between tokens."""
    spelled = ",".join(f"{key}:{json.dumps(value)}" for key, value in given.items())
    spelled = re.sub(r'"(?:[^"\\]|\\.)*"', lambda one: f'<|"|>{json.loads(one[0])}<|"|>', spelled)
    return f"<|tool_call>call:{name}{{{spelled}}}<tool_call|>"


DSML, PARAMETER = "｜DSML｜", '<{0}parameter name="@">#</{0}parameter>\n'
MEMBERS = {
    "Mistral": document("[TOOL_CALLS]@"),
    "Mistral 11": document("[TOOL_CALLS]@[ARGS]"),
    "Mistral with an id": document("[TOOL_CALLS]@[CALL_ID]a1B2c3D4e[ARGS]"),
    "functions": document("functions.@"),
    "Kimi": document(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.@:0<|tool_call_argument_begin|>",
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    "harmony": document(
        "<|channel|>analysis<|message|>Think {x}.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.@ <|constrain|>json<|message|>",
        "<|call|>",
    ),
    "harmony without marks around": document("<|channel|>commentary to=@ code<|message|>"),
    "harmony, recipient first": document(
        "<|start|>assistant to=functions.@<|channel|>commentary json<|message|>", "<|call|>"
    ),
    "sep": document("@<sep>"),
    "DeepSeek V3.1": document(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>@<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
    ),
    "DeepSeek R1": document(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>@\n```json\n", "\n```<｜tool▁call▁end｜>"
    ),
    "Llama": document("<function=@>", "</function>"),
    "Functionary": document(">>>@\n"),
    "Functionary 2": document("<|from|>assistant\n<|recipient|>@\n<|content|>"),
    "Qwen-Agent": document("✿FUNCTION✿: @\n✿ARGS✿: ", "\n✿RESULT✿"),
    "name in the tag": document("<tool_call>@\n", "\n</tool_call>"),
    "name in an element": document(
        "<tool_calls>\n<tool_call>\n<tool_name>@</tool_name>\n<parameters>",
        "</parameters>\n</tool_call>\n</tool_calls>",
    ),
    "Qwen3-Coder": elements(
        "<tool_call>\n<function=@>\n",
        "<parameter=@>\n#\n</parameter>\n",
        "</function>\n</tool_call>",
    ),
    "Seed": elements(
        "<seed:tool_call><function=@>", "<parameter=@>#</parameter>", "</function></seed:tool_call>"
    ),
    "Claude": elements('<invoke name="@">\n', PARAMETER.format(""), "</invoke>"),
    "MiniMax": elements(
        '<minimax:tool_call>\n<invoke name="@">\n',
        PARAMETER.format(""),
        "</invoke>\n</minimax:tool_call>",
    ),
    "DSML": elements(f'<{DSML}invoke name="@">\n', PARAMETER.format(DSML), f"</{DSML}invoke>"),
    "DSML with two bars": elements(
        '<‖DSML‖tool_calls>\n<｜｜DSML｜｜invoke name="@">\n',
        PARAMETER.format("｜｜DSML｜｜"),
        "</｜｜DSML｜｜invoke>\n</‖DSML‖tool_calls>",
    ),
    "DSML with spaces": elements(
        '< | DSML | invoke name="@">\n', PARAMETER.format(" | DSML | "), "</ | DSML | invoke>"
    ),
    "Step": elements(
        '<steptml:invoke name="@">', PARAMETER.format("steptml:"), "</steptml:invoke>"
    ),
    "GLM": elements(
        "<tool_call>@\n", "<arg_key>@</arg_key>\n<arg_value>#</arg_value>\n", "</tool_call>"
    ),
    "LongCat": elements(
        "<longcat_tool_call>@\n",
        "<longcat_arg_key>@</longcat_arg_key>\n<longcat_arg_value>#</longcat_arg_value>\n",
        "</longcat_tool_call>",
    ),
    "pythonic": keywords("[", "]"),
    "LFM2": keywords("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "tool_code": keywords("```tool_code\n", "\n```"),
    "Gemma 4": gemma,
    "Gemma 4 in parentheses": keywords("<|tool_call>call:", "<tool_call|>"),
}
PLACES = ["@", "I look it up.\n\n@", "@\n\nThat is the forecast.", "<think>{maybe}</think>\n@"]


def fits(value):
    """Judge a value by its keys and their types."""
    known = isinstance(value, dict) and "city" in value and value.keys() <= TYPES.keys()
    return known and all(type(one) is TYPES[key] for key, one in value.items())


def test_each_protocol_has_a_member():
    """A row without one would not be tested."""
    texts = [write(NAME, ARGUMENTS[0]) for write in MEMBERS.values()]
    assert not [row.told for row in PROTOCOLS if not any(map(row.opening.search, texts))]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("given", ARGUMENTS)
@pytest.mark.parametrize("member", MEMBERS)
def test_the_arguments_of_a_call_are_the_answer_where_they_fit(member, given, place):
    """As with the tool calls of a provider; the repair tells the name and the notation."""
    text = place.replace("@", MEMBERS[member](NAME, given))
    parsed = parse_output(text, fits=fits, complete=True)
    assert parsed.value == given, parsed.failure
    assert any(each["kind"] == "call" and NAME in each["detail"] for each in parsed.repairs)


@pytest.mark.parametrize("member", MEMBERS)
def test_the_name_is_kept_where_nothing_is_known(member):
    """Without a type, name and arguments are the value, so that nothing is lost."""
    text = MEMBERS[member](NAME, ARGUMENTS[1])
    assert parse_output(text).value == {"name": NAME, "arguments": ARGUMENTS[1]}


@pytest.mark.parametrize("member", [name for name in MEMBERS if "harmony" not in name])
def test_several_calls_are_a_list_and_no_single_answer(member):
    """In their order; where one value is wanted, they are counted."""
    text = "\n".join(MEMBERS[member](NAME, {"city": city}) for city in ("Oslo", "Rome", "Oslo"))
    parsed = parse_output(text, wants_list=True, fits=lambda value: all(map(fits, value)))
    assert parsed.value == [{"city": "Oslo"}, {"city": "Rome"}, {"city": "Oslo"}]
    failure = parse_output(text, wants_list=False, fits=fits).failure
    assert failure is not None
    assert "There are 3 calls" in failure["message"]


@pytest.mark.parametrize("member", MEMBERS)
def test_a_call_that_was_cut_off_is_refused(member):
    """At each place inside of its arguments."""
    text = MEMBERS[member](NAME, ARGUMENTS[1])
    low = text.index("Oslo")
    for end in range(low - 3, low + 6):
        assert not parse_output(text[:end], fits=fits).ok
        assert not parse_output(text[:end], fits=fits, complete=False).ok


@pytest.mark.parametrize("member", MEMBERS)
def test_a_call_in_a_string_of_an_answer_is_text(member):
    """Code and documentation quote calls."""
    value = {"doc": MEMBERS[member](NAME, ARGUMENTS[0])}
    assert parse_output("Here it is:\n" + json.dumps(value)).value == value


@pytest.mark.parametrize("member", [name for name in MEMBERS if "harmony" not in name])
def test_other_json_beside_a_call_is_refused(member):
    """One of the two would be lost."""
    text = MEMBERS[member](NAME, ARGUMENTS[0])
    assert not parse_output('{"temperature": 3}\n\n' + text, fits=fits).ok


@pytest.mark.parametrize("mark", ["</city>", '<parameter name="days">', "<parameter=days>"])
def test_a_parameter_with_a_mark_of_its_notation_inside_is_refused(mark):
    """It was closed by the wrong tag, and the next parameter is not a part of its text."""
    text = f'<invoke name="w"><parameter name="city">Oslo{mark}3</parameter></invoke>'
    assert "may end earlier" in parse_output(text, fits=fits).failure["message"]
    markup = text.replace(mark, "<city>O</city>")
    assert parse_output(markup, fits=fits).value == {"city": "Oslo<city>O</city>3"}


def test_a_parameter_that_comes_twice_is_refused():
    """One of its values would be lost."""
    one = '<parameter name="city">Oslo</parameter>'
    assert not parse_output(f'<invoke name="w">{one}{one}</invoke>', fits=fits).ok


def test_text_between_parameters_is_refused():
    """It may be a parameter in a broken tag."""
    one = "<parameter=city>Oslo</parameter>"
    assert not parse_output(f"<function=w>{one}\nRome\n<parameter=x>1</parameter></function>").ok


def test_a_call_ends_before_the_next_one_that_no_string_quotes():
    """Calls without anything between them are two, and an opening inside a string is text."""
    text = '[TOOL_CALLS]f{"i": "a [TOOL_CALLS]g{x"}[TOOL_CALLS]g{"i": 2}'
    assert [call["arguments"]["i"] for call in parse_output(text).value] == ["a [TOOL_CALLS]g{x", 2]


def test_a_parameter_in_another_notation_is_read_where_a_list_is_wanted():
    """As text it does not fit, so the list of Python is what was meant."""
    text = "<function=f>\n<parameter=query>\n['a', 'b']\n</parameter>\n</function>"
    fits = lambda value: isinstance(value.get("query"), list)  # noqa: E731
    assert parse_output(text, fits=fits).value == {"query": ["a", "b"]}
