"""JSON that is one field of a record in another notation: the rest of the record would be lost."""

import itertools

import pytest

from graph_retry.lossless import read as parse_output

F = "```"
DOCUMENTS = ['{"x": 1}', '["a", "b"]', "{'x': 1}", f'{F}json\n{{"x": 1}}\n{F}']
FIELDS = (("Name", "Ada"), ("Data", "@"), ("Age", "36"))
BULLETS = ("", "- ", "* ", "• ", "> ", "# ")
EMPHASES = ("", "**", "_", "`")
SEPARATORS = (": ", " - ", " -> ", " => ", " = ", "：", "\t", " → ", " — ")
HEADINGS = ("# %", "## %", "### %", "**%**", "**%:**", "%:", "1. %:", "1. **%**")
OTHERS = (
    "<name>Ada</name>\n<data>@</data>\n<age>36</age>",
    "<r><name>Ada</name><data>@</data></r>",
    '<f id="a">x</f><f id="b">@</f>',
    "<tr><td>Ada</td><td>@</td></tr>",
    "<ul><li>Ada</li><li>@</li></ul>",
    "| Ada | @ | 36 |",
    "Ada\t@\t36",
    "Ada | @",
    "Name: Ada, Data: @, Age: 36",
    "Name=Ada; Data=@; Age=36",
    "**Name**: Ada; **Data**: @",
    "name='Ada' data=@",
    "--name Ada --data @",
    ":name Ada\n:data @",
    "- Ada\n- @\n- 36",
    "1. Ada\n2. @\n3. 36",
    "person:\n  name: Ada\n  data: @",
    "[p]\nname=Ada\ndata=@",
    "Name:\n  Ada\nData:\n  @",
    'save(name="Ada", data=@, age=36)',
    "Q1: Ada\nQ2: @\nQ3: 36",
    "1. Name: Ada\n2. Data: @\n3. Age: 36",
)
ROWS = ["name,data\nAda,@", "data,name\n@,Ada", "id;name;data\n1;Ada;@", "Ada, 36, @", "1, true, @"]
FRAMES = (
    lambda text: f"{F}\n{text}\n{F}",
    lambda text: "> " + text.replace("\n", "\n> "),
    lambda text: text.replace("\n", "\r\n"),
)
ALONE = [
    "Answer: @",
    "Result: @\nConfidence: high",
    "Here is the JSON: @\nNote: I assumed EUR.",
    "Here you go:\n@\nBest: me",
    "**Result:**\n@\n\n**Notes:**\n- a\n- b",
    "### Output\n@\n\n### Explanation\nI did it this way because it is short.",
    "Summary: I extracted everything.\n\nJSON:\n@",
    "Invoice 12:\n@\n\nThe total is in EUR.",
    "<thinking>hm</thinking><answer>@</answer>",
    "<explanation>short</explanation>\n@",
    "Thought: I know\nAction: search\nAction Input: @",
    "Q: what?\nA: @",
    "## Extracted data\n@\n\n## Notes\nThe amounts were given in euros.",
    "1. I read the mail.\n2. I extracted the fields.\n\n@",
    "- I could not find the date.\n- The total is in EUR.\n\n@",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n@",
    "Steps:\n1. Read\n2. Write\n\nFinal JSON:\n@",
    "Date: today\nFrom: me\n\n@",
    "Ergebnis: @\nSicherheit: hoch",
    "Résultat : @\nConfiance : haute",
]


def records():
    """Write the record in each notation: lines, headings and others."""
    for bullet, emphasis, separator in itertools.product(BULLETS, EMPHASES, SEPARATORS):
        yield "\n".join(f"{bullet}{emphasis}{k}{emphasis}{separator}{v}" for k, v in FIELDS)
    for heading, gap, start in itertools.product(HEADINGS, ("\n", "\n\n"), (0, 1)):
        yield "\n\n".join(heading.replace("%", k) + gap + v for k, v in FIELDS[start:])
    yield from OTHERS


@pytest.mark.parametrize("document", DOCUMENTS)
def test_one_field_of_a_record_is_no_answer(document):
    """It is refused in each notation, as strict JSON, and in a fence or quotation with the rest."""
    is_fence = document.startswith(F)  # It ends with its line.
    whole = [record for record in records() if not is_fence or f"{record}\n".count("@\n")]
    whole += [] if is_fence else ROWS
    texts = [record.replace("@", document) for record in whole]
    texts += [] if is_fence else [frame(text) for text in texts for frame in FRAMES]
    values = {text: parse_output(text, complete=True).value for text in texts}
    lost = {text: value for text, value in values.items() if value and "Age" not in value}
    assert not lost
    assert len(texts) > 250


def test_elements_with_names_of_their_own_are_no_list():
    """The names would be lost; elements of one name are a list."""
    texts = ['<ada>{"x": 1}</ada>\n<bob>{"x": 2}</bob>', '<one>{"x": 1}</one>\n<one>{"x": 2}</one>']
    read = [parse_output(text, wants_list=True).value for text in texts]
    assert read == [None, [{"x": 1}, {"x": 2}]]


def test_the_refusal_says_what_is_lost():
    """The model can then write the whole record as JSON."""
    failure = parse_output('Name: Ada\nData: {"x": 1}\nAge: 36').failure
    assert failure is not None
    assert failure["message"].startswith("The answer is one field of data in another notation")


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("text", ALONE)
def test_an_answer_beside_its_explanation_is_read(text, document):
    """A label of the answer, a sentence or another notation is no other field."""
    parsed = parse_output(text.replace("@", document), complete=True)
    assert parsed.value in ({"x": 1}, ["a", "b"]), parsed.failure
