"""What models write beside an answer: explanations, code, examples, and what they left out."""

import json

import pytest

from graph_retry.lossless import read as parse_output

F = "```"
ROWS = {"rows": [{"id": 1}, {"id": 2}]}

EXPLAINED = [
    'I set `"phone": null` since it is not given.',
    '- `"confidence": 0.87`: fairly sure.',
    'To enable it, set `"enabled": true`.',
    "The template uses {{ name }} and {% if x %}.",
    "Here `[0-9]+` matches digits; the score range is [1-5].",
    "See issue [#42](https://example.com/42).",
    '"It was [...] great" is positive.',
    'Access it with `data["items"][0]["total"]`.',
    'For an invalid id: `{"error": "not found"}`.',
    "Step 1: gather x = [1, 2, 3]",
    f"{F}js\nfunction f(a) {{\n  return a;\n}}\n{F}",
    f'{F}\nfetch("/a", {{\n  method: "POST"\n}});\n{F}',
    f'{F}python\nresult = {{"status": "ok"}}\n{F}',
    f"{F}typescript\ninterface Item {{\n  id: number;\n}}\n{F}",
    f"{F}bash\nnpm install\n{F}",
]
WHOLE = [
    "Nothing was omitted.",
    "This is a complete list; no rows have been omitted.",
    "The output is not truncated.",
    "Es wurde nichts ausgelassen.",
    "Aucune donnée n'a été omise.",
    "列表已完整，没有省略。",
    "省略した項目はありません。",
    "Empty fields are omitted.",
    "I omitted the currency symbol from the price.",
    "The remaining fields are null.",
    "For brevity, I kept the descriptions short.",
    "It works in Python, JavaScript, Go, etc.",
    "Only the first name was given in the text.",
    "Shall I continue with the next document?",
    "1. First\n2. Second",
    "2 fields were found.",
    "Wait 5 minutes before you try again.",
    "Shall I continue?",
    "These are the first two items.",
    "I'll continue in the next message if you like.",
    "Let me know if you want the rest.",
    "It is not valid for 2025.",
    "The list is incomplete if you count drafts.",
    "If you live in the US, change the currency to `USD`.",
]
ELIDED = [
    "...",
    "(97 more items omitted)",
    "and 97 others",
    "[truncated]",
    "The rest is omitted for brevity.",
    "The remaining rows follow.",
    "To be continued.",
]
TAKEN_BACK = [
    "Sorry, the id should be 3, not 2.",
    "Edit: the id is 3.",
    "Please ignore the above JSON.",
    "I got the id wrong; it's 3.",
    "Let me fix that.",
    "It should have been 3.",
    "Strike that, it is 3.",
]


def templates():
    """The places of an answer: in a fence, or alone between blank lines."""
    return [f"Here is the JSON:\n\n{F}json\n@\n{F}\n\n%", "Here is the JSON:\n\n@\n\n%"]


def read(template, remark):
    """Read `ROWS` in a place of `template`, beside a remark."""
    answer = json.dumps(ROWS, indent=2)
    return parse_output(template.replace("%", remark).replace("@", answer), complete=True)


@pytest.mark.parametrize("template", templates())
@pytest.mark.parametrize("remark", EXPLAINED + WHOLE)
def test_an_answer_is_read_beside_its_explanation(template, remark):
    """Examples, code and quoted pieces in prose are no second answer, and denials no omission."""
    parsed = read(template, remark)
    assert (parsed.value, parsed.failure) == (ROWS, None)


@pytest.mark.parametrize("remark", [each for each in EXPLAINED if not each.startswith(F)])
def test_an_answer_in_a_fence_is_read_behind_its_explanation(remark):
    """The same before the answer."""
    assert parse_output(f"{remark}\n\n{F}json\n{json.dumps(ROWS)}\n{F}").value == ROWS


@pytest.mark.parametrize("template", templates())
@pytest.mark.parametrize(
    ("kind", "remark"),
    [("elided", each) for each in ELIDED] + [("ambiguous", each) for each in TAKEN_BACK],
)
def test_an_answer_is_refused_that_is_not_whole_or_not_meant(template, kind, remark):
    """The writer says that there is more, or that something else is right."""
    failure = read(template, remark).failure
    assert failure is not None
    assert failure["kind"] == kind


@pytest.mark.parametrize("template", templates())
@pytest.mark.parametrize(
    "remark",
    [
        'The answer is {"rows": []}.',
        'It should be `{"rows": []}`.',
        f'{F}\n{{"rows": []}}\n{F}',
        f"{F}json\n[]\n{F}",
        'Or, if you prefer: {"rows": [1]}',
        'The second record is {"id": 3}.',
    ],
)
def test_a_second_answer_stays_one(template, remark):
    """Prose is not looked through where it announces another answer, or has one on its own."""
    failure = read(template, remark).failure
    assert failure is not None


@pytest.mark.parametrize(
    "fence",
    [
        f"{F}`\n{F}json\n@\n{F}\n{F}`",
        f"Final answer: {F}json\n@\n{F}",
        f"<answer>{F}json\n@\n{F}</answer>",
        f"~~~\n{F}\n@\n{F}\n~~~",
    ],
)
@pytest.mark.parametrize("before", ["", "| a | b |\n|---|---|\n| 1 | 2 |\n\n"])
def test_a_fence_is_seen_in_another_one_and_behind_words(fence, before):
    """A second answer behind it is then no code that the text quotes."""
    text = before + fence.replace("@", '{"a": 1}')
    assert parse_output(text).value == {"a": 1}
    assert not parse_output(f'{text}\n\nAlternatively:\n{{"b": 2}}').ok


@pytest.mark.parametrize(
    "before",
    [
        "According to [1], ",
        "return ",
        "Q: what?\nA: ",
        "Thought: I know.\nAction: ",
        ",",
        "\\",
        '"""\n',
    ],
)
def test_an_answer_is_read_behind_a_citation_a_label_or_a_mark(before):
    """They are no other data."""
    assert parse_output(f'{before}{{"a": 1}}').value == {"a": 1}


@pytest.mark.parametrize("other", ['And ["c"] from page two.', 'Plus: ["x"]'])
def test_a_list_beside_a_list_is_more_of_it(other):
    """So it is no piece of prose; beside an object it would be."""
    assert parse_output(f'["a", "b"]\n\n{other}').failure is not None


def test_a_document_on_its_own_line_is_a_second_answer():
    """It is no piece of prose."""
    assert read(templates()[0], '{"rows": []}').failure is not None


@pytest.mark.parametrize("value", [[], {}])
@pytest.mark.parametrize("label", ["Here is the JSON:", "Voici :", "Tags:", "**Result:**"])
def test_an_empty_answer_in_a_fence_is_read(value, label):
    """Nothing found is an answer."""
    assert parse_output(f"{label}\n\n{F}json\n{json.dumps(value)}\n{F}").value == value


@pytest.mark.parametrize("value", ["spam", 42, -1.5, True, None])
@pytest.mark.parametrize(
    "template",
    [
        f"Here is the label:\n\n{F}json\n@\n{F}\n\nDone.",
        "<think>It says [x] or {y}.</think>\n\n@",
        "@</s>",
        "@<|eot_id|>",
        "<answer>@</answer>",
        "Answer: @",
        "**Result:** @",
        "JSON: `@`",
        "json\n@",
        "**@**",
    ],
)
def test_a_scalar_is_an_answer(value, template):
    """A string, number or literal is read where nothing but a label or marks stand around it."""
    parsed = parse_output(template.replace("@", json.dumps(value)), complete=True)
    assert (parsed.value, parsed.ok, parsed.lossless) == (value, True, True)


@pytest.mark.parametrize(
    "text", ["It is 42 today.", "Answer: 42 or 43", f"{F}json\n4\n{F}\n{F}json\n5\n{F}", "spam</s>"]
)
def test_a_scalar_in_a_sentence_is_none(text):
    """What is not alone, or no JSON, is prose."""
    assert parse_output(text).failure is not None


def test_a_scalar_that_was_cut_off_is_refused():
    """More digits may follow the last one."""
    failure = parse_output("Answer: 42", complete=False).failure
    assert failure is not None
    assert failure["kind"] == "truncated"


@pytest.mark.parametrize("code", ['x = {"k": "v"};', 's = "{" + t;', 'f("a\n"b: "c");', "int x;"])
def test_code_in_a_string_of_the_answer_is_no_code_beside_it(code):
    """It is read as it stands, or the answer is refused; it is never left out of the string."""
    text = f'{{"a": "\n{F}c\n{code}\n{F}\nend", "b": 1}}'
    parsed = parse_output(text, complete=True)
    assert parsed.value in (None, {"a": f"\n{F}c\n{code}\n{F}\nend", "b": 1})


@pytest.mark.parametrize("text", ["-[273]", 'f{"a": 1}', '7{"a": 1}'])
def test_a_value_that_a_word_or_a_sign_touches_is_no_answer(text):
    """It is a piece of something else."""
    assert not parse_output(text).ok
