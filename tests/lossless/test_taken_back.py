"""What a text says of its answer: that it is wrong, partial, an example, or simply the answer."""

import json

import pytest

from graph_retry.lossless import read as parse_output

F = "```"
ANSWER = '{"a": 1}'

TAKEN_BACK = {
    "ambiguous": [
        "@\n\nWait, correction: `a` should be 2.",
        "@\n\nHmm, wait. That should have been 2.",
        "@\n\nOops — I forgot the other one.",
        "@ I made a mistake there.",
        "@\nHmm, that is wrong. It should be 2.",
        "@\nActually a is 2, not 1.",
        "@\nKorrektur: a ist 2.",
        "@\n\n更正：a 是 2。",
        "The answer is not @.",
        "Do not return @",
        "Bad example: @",
        "~~@~~",
        "<del>@</del>",
        f'{F}json\n@\n{F}\nAlternatively:\n{F}python\n{{"a": 2}}\n{F}',
        f'{F}json\n{{"a": "one\n{F}\n\n{F}json\ntwo"}}\n{F}',
    ],
    "elided": [
        "Part 1 of 2:\n@",
        "@ (partial)",
        '[{"a": 1},\n // 其余省略\n {"a": 9}]',
    ],
    "no_json": [
        "- all users: @\n- orders: none",
        "Name: Bob\nTags: @",
        "name: Bob\ntags: @",
    ],
}
STANDING = [
    "Wait for it: @",
    "@ or null",
    "@ if it is paid",
    "Sorry, my mistake. Here is the correct one: @",
    "@\n\nLet me know if this is wrong, or if I missed anything.",
    "@ If you want more, ask.",
    "@\n\nWait for the review before you use it.",
    "@\n\nThis should be all.",
    "@\n\nActually, that is all there is.",
    "Correct format, as requested: @",
    "- Answer: @\n- Confidence: high",
    "Part 1 of 1: @",
    "Page 2 of 3 of the document says: @",
    "The extracted data in JSON format is:\n@",
    "He resumido la factura: @",
    "剩余金额如下：@",
    "<s>@</s>",
    "@\n\n[1] https://example.com\n[2] https://example.org",
    f'{F}json\n@\n{F}\nUse it:\n{F}python\nprint(data["a"])\n{F}',
    f'{F}json\n@\n{F}\nIn Python:\n{F}python\n{{"a": 1}}\n{F}',
    '{"a": 1 // 0 or 1\n}',
    '{"a": 1 // should be positive\n}',
]


@pytest.mark.parametrize(
    ("kind", "template"),
    [(kind, template) for kind, templates in TAKEN_BACK.items() for template in templates],
)
def test_an_answer_that_is_taken_back_is_none(kind, template):
    """What the text itself calls wrong, partial or an alternative is not taken for the answer."""
    parsed = parse_output(template.replace("@", ANSWER))
    assert (parsed.value, parsed.failure and parsed.failure["kind"]) == (None, kind)


@pytest.mark.parametrize("template", STANDING)
def test_an_answer_stands_beside_words_that_take_nothing_back(template):
    """The same words in another place say nothing against the answer."""
    assert parse_output(template.replace("@", ANSWER)).value == {"a": 1}


@pytest.mark.parametrize("value", [{"a": 'x "y"'}, ["'", {"b": []}]])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("template", ["@", " @\n", f"{F}json\n@\n{F}"])
def test_json_in_strings_is_read_however_often_it_was_encoded(value, layers, template):
    """A document is the same inside one string or several, in a fence or without."""
    text = json.dumps(value)
    for _ in range(layers):
        text = json.dumps(text)
    parsed = parse_output(template.replace("@", text))
    assert parsed.value == value
    assert "json_in_string" in [repair["kind"] for repair in parsed.repairs]


@pytest.mark.parametrize("value", [[{"a": 1}], ["x", 2], {"a": [1]}])
def test_a_footnote_is_no_second_list(value):
    """What stands on a line with its number in brackets is a source, and no element."""
    assert parse_output(f"{json.dumps(value)}\n\n[1] https://example.com").value == value
    assert parse_output(f"{json.dumps(value)}\n[1]").failure is not None


@pytest.mark.parametrize("value", ["plain", '"quoted"', '"{a}" and "{b}"', "{name}, hello"])
def test_a_string_that_holds_no_document_stays_a_string(value):
    """What only looks like the start of a document is text."""
    for text in (json.dumps(value), f"{F}\n{json.dumps(value)}\n{F}"):
        assert parse_output(text).value == value
