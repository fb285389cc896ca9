"""The levels and the small functions around the reader."""

import subprocess
import sys

import pytest

from graph_retry.output import (
    extract_code_fence,
    extract_json_block,
    parse_output,
    remove_trailing_commas,
    repair_output,
)

F = "```"


@pytest.mark.parametrize(
    ("text", "lowest"),
    [
        ('{"a": 1}', "none"),
        (' {"a": 1}\n', "none"),
        (f'{F}json\n{{"a": 1}}\n{F}', "minimal"),
        ('\ufeff{"a": 1}\u200b', "minimal"),
        ('Sure: {"a": 1}', "standard"),
        ("{'a': 1}", "standard"),
        ('{"a": 1, "b', "aggressive"),
    ],
)
def test_each_level_reads_more(text, lowest):
    """A text is read from its lowest level on, and refused below it."""
    levels = ["none", "minimal", "standard", "aggressive"]
    for level in levels:
        assert parse_output(text, level).ok is (levels.index(level) >= levels.index(lowest))


def test_a_guess_is_flagged():
    """Only the aggressive level guesses, and never calls that lossless."""
    parsed = parse_output('{"a": 1, "b": [1, 2', "aggressive")
    assert (parsed.value, parsed.lossless) == ({"a": 1, "b": [1, 2]}, False)
    assert [r["grade"] for r in parsed.repairs] == ["guessed"]


@pytest.mark.parametrize(
    "text", ["Nothing here.", "I'm sorry, I can't.", "[" * 20_000, '"' * 200_000]
)
def test_a_guess_needs_something_to_guess_from(text):
    """Prose, too deep and too long texts are refused at every level."""
    assert parse_output(text, "aggressive").ok is False


def test_strict_json_comes_back_as_it_is():
    """Big integers, floats, key order and layout survive."""
    text = '{ "b": 123456789012345678901234567890, "a": 1.0, "c": [true, null, "\\u00e9"] }'
    parsed = parse_output(text)
    assert (parsed.text, parsed.repairs, parsed.lossless) == (text, [], True)
    assert repr(parsed.value) == repr(
        {"b": 123456789012345678901234567890, "a": 1.0, "c": [True, None, "é"]}
    )


def test_strict_json_in_a_wrapping_keeps_its_text():
    """The JSON text of a value that needed no repair is what the model wrote."""
    assert repair_output('Sure: {"a": 1.10}') == '{"a": 1.10}'


def test_many_repairs_of_one_kind_are_one_record():
    """A long document does not fill the ledger."""
    parsed = parse_output("[" + "'x', " * 1000 + "'y']")
    assert [(r["kind"], r["position"]) for r in parsed.repairs] == [("single_quotes", 1)]
    assert parsed.repairs[0]["detail"].endswith("(and 1000 more)")


@pytest.mark.parametrize(("text", "fixed"), [("{a: 1}", '{"a": 1}'), ("no json", "no json")])
def test_repair_output(text, fixed):
    """Repairing gives JSON text, or the text unchanged."""
    assert repair_output(text) == fixed


def test_a_lone_surrogate_can_be_written_down():
    """The text of a repaired value can always be encoded."""
    assert repair_output("{'a': '\\ud800'}").encode() == b'{"a": "\\ud800"}'


@pytest.mark.parametrize(
    ("text", "lang", "inside"),
    [
        (f"x\n{F}json\n{{}}\n{F}\ny", None, "{}"),
        (f"{F}py\n1\n{F}\n{F}JSON\n2\n{F}", "json", "2"),
        ("~~~\na\nb\n~~~", None, "a\nb"),
        (f"{F}json\n1", None, "1"),
        (f"{F}py\n1\n{F}", "json", None),
        ("none", None, None),
    ],
)
def test_extract_code_fence(text, lang, inside):
    """The first fence with the tag is found; without a tag, the first of all."""
    assert extract_code_fence(text, lang) == inside


@pytest.mark.parametrize(
    ("text", "block"),
    [("a {'b': 1,} c", "{'b': 1,}"), ("[1, ...]", None), ("no", None), ('{"a": 1}', '{"a": 1}')],
)
def test_extract_json_block(text, block):
    """The one document is cut out as written."""
    assert extract_json_block(text) == block


@pytest.mark.parametrize(
    ("text", "fixed"),
    [('{"a": ",}",}', '{"a": ",}"}'), ("[1,\n]", "[1\n]"), ("[1, 2]", "[1, 2]"), ('",]', '",]')],
)
def test_remove_trailing_commas(text, fixed):
    """Commas inside strings stay."""
    assert remove_trailing_commas(text) == fixed


def test_misuse_is_an_error():
    """What is no text and no level is named."""
    with pytest.raises(ValueError, match=r"`level`: give .* not 'some'"):
        parse_output("{}", "some")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="`text`: give a text"):
        parse_output({})  # pyright: ignore[reportArgumentType]


def test_reading_does_not_load_the_guesser():
    """Only the aggressive level pays for `json_repair`."""
    code = "import sys, graph_retry.output as r; r.parse_output('{a: 1}')"
    code += "; sys.exit('json_repair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("inside", ["", "]}:", '\\"]:', "\\\\", '\\\\\\"[{', "é:", "\\u0022"])
def test_a_repeated_key_is_found_whatever_the_strings_hold(inside):
    """Marks inside strings count neither as members nor as depth."""
    text = '{"x": ["%s", {"a": 1, "%s": 2, "a": %s}]}'
    assert parse_output(text % (inside, inside, "1"), "none").ok
    assert not parse_output(text % (inside, inside, "3"), "none").ok
    deep = f'["{inside}", ' * 201 + "0" + "]" * 201
    assert parse_output(deep, "none").ok
    assert not parse_output(f"[{deep}]", "none").ok
