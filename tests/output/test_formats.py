"""Answers in YAML, JSON Lines and tags: read to what they say, or refused."""

import ast
import json
import time
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from graph_retry import AttemptsExhausted, retry_llm_call
from graph_retry._core.output.formats.format import format_named, read_as
from graph_retry.data import replay
from graph_retry.output import describe_format
from tests.parts import draws


class Person(BaseModel):
    """What is asked for."""

    name: str
    age: int = 0
    country: str | None = None
    version: str = ""
    tags: list[str] = []
    friends: "list[Person]" = []


def read(name, text, output: Any = Person, level="standard", complete=None):
    """Read a text in a format; return the value, or the kind of the refusal."""
    written = format_named(name)
    schema = None if output is None else TypeAdapter(output).json_schema()
    parsed = read_as(written, text, level, schema=schema, complete=complete)
    assert (parsed.failure is None) is parsed.ok
    return parsed.value if parsed.failure is None else parsed.failure["kind"]


YAML = [
    ("name: Ada\nage: 36", {"name": "Ada", "age": 36}),
    ("```yaml\nname: Ada\n```", {"name": "Ada"}),
    ("Here it is:\n\n```yml\nname: Ada\n```\nAnything else?", {"name": "Ada"}),
    ("<think>name: Bob</think>\n```\nname: Ada\n```", {"name": "Ada"}),
    ("name: NO\ncountry: no", {"name": "NO", "country": "no"}),  # Norway
    ("name: 123\nversion: 1.10", {"name": "123", "version": "1.10"}),  # where text is wanted
    ("name: true\ncountry: null", {"name": "true", "country": None}),
    ("country: ~\nversion: ~", {"country": None, "version": None}),  # validation tells
    ("name: null\nversion:", {"name": None, "version": None}),
    ("name: 'null'\nversion: \"~\"", {"name": "null", "version": "~"}),
    ("name: 2026-01-31\nversion: 12:30:00", {"name": "2026-01-31", "version": "12:30:00"}),
    ("age: 0o17\nversion: 0x1F\nname: 1_000", {"age": "0o17", "version": "0x1F", "name": "1_000"}),
    ("name: 017\nage: 08", {"name": "017", "age": "08"}),
    ("age: 017", "ambiguous"),  # 15 in YAML 1.1, and 17 in YAML 1.2
    ("age: '36'\nname: \"x: y\"", {"age": "36", "name": "x: y"}),
    ("tags: [a, 1, true]", {"tags": ["a", "1", "true"]}),
    ("tags:\n  - |\n    two\n    lines\n  - b # note", {"tags": ["two\nlines\n", "b"]}),
    ("friends:\n  - name: 007\n    age: 7", {"friends": [{"name": "007", "age": 7}]}),
    ("1: a\nyes: b", {"1": "a", "yes": "b"}),  # keys as they are written
    ('{"name": "Ada", "age": 36}', {"name": "Ada", "age": 36}),  # JSON is YAML
    ("name: a\nname: b", "ambiguous"),
    ("name: a\n---\nname: b", "ambiguous"),
    ("```yaml\nname: a\n```\nor\n```yaml\nname: b\n```", "ambiguous"),
    ("a: &a [x, x]\nb: *a", "syntax"),
    ("a: !!python/object/apply:os.system [ls]", "syntax"),
    ("a: !!binary aGk=", "syntax"),
    ("<<: {a: 1}", "syntax"),
    ("? [a, b]\n: c", "syntax"),
    ("name: 'Ada", "syntax"),
    ("\tname: Ada", "syntax"),
    ("name: \0", "syntax"),
    ("tags:\n  - a\n  - ...", "elided"),
    ("tags:\n  - a\n  # and so on", "elided"),
    ("```yaml\nname: Ada", "truncated"),
    ("name: |\n  So:\n  ```\n  x\n  ```\nage: 1", {"name": "So:\n```\nx\n```\n", "age": 1}),
    ("```yaml\nname: |-\n  ```py\n  x\n  ```\nage: 1\n```", {"name": "```py\nx\n```", "age": 1}),
    ("```yaml\nname: |\n  x\n```\nage: 1\n```", "ambiguous"),  # closed too early
    ("name: |\n  x = 1\n  # and so on\nage: 1", {"name": "x = 1\n# and so on\n", "age": 1}),
    ('{"name": "\\ud83d\\ude00"}', {"name": "\U0001f600"}),
    ('name: "a \u2028 b"', "syntax"),  # YAML would leave out the spaces
    ("", "no_json"),
]


@pytest.mark.parametrize(("text", "value"), YAML)
def test_yaml_is_read_as_it_is_written(text, value):
    """Words stay words; numbers are numbers where numbers are wanted."""
    assert read("yaml", text) == value


def test_a_number_that_yaml_1_1_takes_for_text_is_one_where_no_text_is_wanted():
    """Dialects differ about an exponent without a point or sign; the type decides."""
    assert read("yaml", "- 1e3\n- 0E0", list[float]) == [1000.0, 0.0]
    assert read("yaml", "- 1e3\n- 0E0", list[str]) == ["1e3", "0E0"]


def test_without_a_type_yaml_has_the_scalars_of_json():
    """What JSON spells is what it is there, and everything else is text."""
    text = "a: 1\nb: 1.5\nc: true\nd: null\ne: yes\nf: 01\ng: .5\nh: 1.0e+3\ni: ''\nj: 1e3"
    assert read("yaml", text, None) == {
        "a": 1, "b": 1.5, "c": True, "d": None, "e": "yes", "f": "01", "g": ".5", "h": 1e3, "i": "",
        "j": "1e3",
    }  # fmt: skip


JSON_LINES = [
    ('{"name": "Ada"}\n{"name": "Bob"}', [{"name": "Ada"}, {"name": "Bob"}]),
    ('```jsonl\n{"name": "Ada"}\n\n```', [{"name": "Ada"}]),
    ("{name: 'Ada'}\n{'name': 'Bob',}", [{"name": "Ada"}, {"name": "Bob"}]),  # mended
    ('[{"name": "Ada"}, {"name": "Bob"}]', [{"name": "Ada"}, {"name": "Bob"}]),
    ('[\n {"name": "Ada"},\n {"name": "Bob"}\n]', [{"name": "Ada"}, {"name": "Bob"}]),
    ('{"name": "a\u2028b"}', [{"name": "a\u2028b"}]),
    ("[]", []),
    ("", "no_json"),  # nothing was said, not even that there is none
    ('{"name": "Ada"}\r\n\r\n{"name": "Bob"}\r\n', [{"name": "Ada"}, {"name": "Bob"}]),
    ('{"name": "Ada"}\nand Bob', "syntax"),
    ('{"name": "Ada"}\n{"name": "Bo', "syntax"),
]


@pytest.mark.parametrize(("text", "value"), JSON_LINES)
def test_json_lines_are_read_one_by_one(text, value):
    """Each line is an element; a line that cannot be read is named."""
    assert read("jsonl", text, list[Person]) == value


def test_lines_that_are_lists_stay_lists():
    """One row of a table is not taken for the table."""
    assert read("jsonl", "[1, 2]", list[list[int]]) == [[1, 2]]
    assert read("jsonl", "[1, 2]", list[int]) == [1, 2]
    assert read("jsonl", "[1, 2]", None) == [[1, 2]]


TAGGED = [
    ("<name>Ada</name><age>36</age>", {"name": "Ada", "age": 36}),
    ("Sure.\n<person>\n<name> Ada </name>\n</person>\nBye", {"name": "Ada"}),
    ("<name>1.10</name><version>1.10</version>", {"name": "1.10", "version": "1.10"}),
    ("<name>\nif a < b && c:\n    go()\n</name>", {"name": "if a < b && c:\n    go()"}),
    ("<name>a <b>bold</b> word</name>", {"name": "a <b>bold</b> word"}),
    ('<tags>["a", "b"]</tags>', {"tags": ["a", "b"]}),
    ("<tags>a</tags>\n<tags>b</tags>", {"tags": ["a", "b"]}),
    ("<tags><tag>a</tag><tag>b</tag></tags>", {"tags": ["a", "b"]}),
    (
        "<friends><friend><name>Bo</name><age>1</age></friend></friends>",
        {"friends": [{"name": "Bo", "age": 1}]},
    ),
    ("<friends><name>Bo</name></friends>", {"friends": [{"name": "Bo"}]}),
    (
        "<friends><name>A</name></friends><friends><name>B</name></friends>",
        {"friends": [{"name": "A"}, {"name": "B"}]},
    ),
    ("<age>many</age>", {"age": "many"}),  # validation tells
    ("<name>\n<![CDATA[a < b]]>\n</name><age><![CDATA[36]]></age>", {"name": "a < b", "age": 36}),
    ("<name><![CDATA[a ]]]]><![CDATA[> b]]></name>", {"name": "a ]]> b"}),
    ("<name>write <![CDATA[x]]></name>", {"name": "write <![CDATA[x]]>"}),  # text about it
    ("<name><![CDATA[x]]> y</name>", "syntax"),
    ("<name><![CDATA[x</name>", "syntax"),
    ("<name>So:\n```py\nx\n```\n</name>", {"name": "So:\n```py\nx\n```"}),
    ("```xml\n<name>\n```\nx\n```\n</name>\n<age>1</age>\n```", {"name": "```\nx\n```", "age": 1}),
    ("<friends></friends>", {"friends": []}),
    ("<tags></tags>", "ambiguous"),  # no text, or an empty one
    ('<tags>["a", ...]</tags>', "syntax"),
    ("<tags>[1, 2</tags>", "syntax"),
    ("<tags>[</tags>", "syntax"),
    ("<tags>[1] says so</tags>", {"tags": ["[1] says so"]}),
    ("```xml\n<name>Ada</name>\n```", {"name": "Ada"}),
    ("<name>a</name><name>b</name>", "ambiguous"),
    ("<name>a<name>b</name></name>", "ambiguous"),
    ("<name>a</name> more</name>", "ambiguous"),
    ("<name>a</name> or <age>1</age>", "syntax"),
    ('<name id="1">a</name>', "syntax"),
    ("<name>Ad", "truncated"),
    ("Ada", "no_json"),
]


@pytest.mark.parametrize(("text", "value"), TAGGED)
def test_fields_in_tags_are_read_as_they_are_written(text, value):
    """Text stands in its tag as it is; what else is wanted is JSON, or tags again."""
    assert read("xml", text) == value


def test_without_a_type_every_tag_is_a_field():
    """All at the top are text."""
    text = "<a>1</a><b>x</b>"
    assert read("xml", text, None) == {"a": "1", "b": "x"}


@pytest.mark.parametrize("name", ["yaml", "jsonl", "xml"])
def test_a_cut_off_answer_is_never_whole(name):
    """These formats show no end of their own, so the provider's word counts."""
    text = {"yaml": "name: Ad", "jsonl": '{"name": "Ada"}', "xml": "<name>Ada</name>"}[name]
    assert read(name, text, complete=False) == "truncated"
    assert read(name, text, complete=True) != "truncated"


@pytest.mark.parametrize(
    ("level", "text", "value"),
    [
        ("none", "name: Ada", {"name": "Ada"}),
        ("none", "```yaml\nname: Ada\n```", "syntax"),
        ("minimal", "```yaml\nname: Ada\n```", {"name": "Ada"}),
        ("minimal", "So:\n```yaml\nname: Ada\n```", "syntax"),
        ("aggressive", "So:\n```yaml\nname: Ada\n```", {"name": "Ada"}),
    ],
)
def test_levels_say_what_may_be_left_out(level, text, value):
    """Without repair the text is the document."""
    assert read("yaml", text, level=level) == value


letters = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | letters
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(letters, inner)
)


@pytest.mark.drawn
@settings(max_examples=draws(50, 1_000))
@given(values.filter(lambda value: isinstance(value, dict | list)))
def test_what_another_writer_writes_comes_back(value):
    """YAML of PyYAML, and JSON Lines of the standard library, are read to what was written."""
    text = yaml.safe_dump(value, allow_unicode=True, default_style=None)
    came = read("yaml", text, None, level="none")
    elided = any(mark in text for mark in ("...", "…", "<<"))
    assert came == value or elided
    lines = "\n".join(json.dumps(item) for item in [value, [value]])
    assert read("jsonl", lines, None) == [value, [value]]


class Inverted:
    """A format of somebody's own."""

    name = "inverted"

    def parse(self, text, schema):
        if "!" in text:
            raise ValueError("no exclamation marks")
        return json.loads(text[::-1])

    def repair(self, text):
        return text.strip(), []

    def describe(self):
        return "Write JSON backwards."


@pytest.mark.parametrize("name", ["yaml", "xml", Inverted()])
def test_a_call_reads_validates_and_tells_in_its_format(name):
    """The same issues, ledger and feedback; the value is kept as JSON."""
    answers = {
        "yaml": ("name: Ada\nage: old", "name: Ada\nage: 36\n"),
        "xml": ("<name>Ada</name><age>old</age>", "<name>Ada</name><age>36</age>"),
    }.get(name, tuple(json.dumps({"name": "Ada", "age": age})[::-1] for age in ("old", 36)))
    prompts, records = [], []

    def ask(prompt):
        prompts.append(prompt)
        return answers[len(prompts) - 1]

    options = {"feedback": "full", "auto_retries": 1, "on_attempt": records.append}
    done = retry_llm_call(ask, "Who?", output=Person, format=name, **options)
    assert done == Person(name="Ada", age=36)
    assert records[0]["issues"][0]["path"] == "/age"
    assert json.loads(records[1]["repaired"]["text"]) == {"name": "Ada", "age": 36}
    assert describe_format(name) in prompts[1]
    assert "JSON and nothing else" not in prompts[1]
    replayed = replay(records[:1], output=Person, format=name)
    assert replayed[0].differs == []


def test_what_cannot_be_read_is_a_failure_of_its_format():
    """The failure names the format, and quotes what stands there."""
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda _: "a: [", None, output=Person, format="yaml", review=False)
    (record,) = caught.value.attempts
    assert record["failure"]["kind"] == "invalid_syntax"
    assert record["failure"]["type"] == "InvalidYAML"
    assert record["issues"][0]["code"] == "invalid_yaml"
    with pytest.raises(AttemptsExhausted, match="no exclamation marks"):
        retry_llm_call(lambda _: "!", None, output=Person, format=Inverted(), review=False)


class Literals(Inverted):
    """A format whose reader raises errors of its own kind."""

    name = "literal"

    def parse(self, text, schema):
        return ast.literal_eval(text)


def test_whatever_a_format_raises_is_a_failure_of_the_answer():
    """Else the thread would end in an error, and again whenever it is resumed."""
    with pytest.raises(AttemptsExhausted, match="SyntaxError") as caught:
        retry_llm_call(lambda _: "{1: ", None, output=Person, format=Literals(), review=False)
    assert caught.value.attempts[0]["failure"]["type"] == "InvalidLITERAL"


def test_a_word_is_a_word_in_yaml():
    """A type of a few words is read from one, as in JSON."""
    output = Literal["yes", "no"]
    assert retry_llm_call(lambda _: "no\n", None, output=output, format="yaml") == "no"


@pytest.mark.parametrize("given", ["toml", 3, Inverted, object()])
def test_what_is_no_format_is_refused_before_the_call(given):
    """The error lists the names."""
    with pytest.raises(ValueError, match=r"`format`: give 'json', .* or a `Format`"):
        retry_llm_call(lambda _: "", None, format=given)


def test_a_bomb_and_a_deep_nest_are_refused_in_time():
    """Aliases are refused before they are followed, and a long text is read in a few passes."""
    bomb = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 8)}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    started = time.process_time()
    assert read("yaml", bomb, None) == "syntax"
    assert read("yaml", "[" * 1_000, None) in {"too_deep", "syntax"}
    assert read("xml", "<a>" * 5_000 + "</a>", None) == "ambiguous"
    assert read("jsonl", "```a\n" * 12_000) == "truncated"
    assert read("yaml", "name: |\n" + "\n" * 60_000 + "x: *") == "syntax"
    assert read("xml", f"<friends>{'<f>' * 20_000}</friends>") == "syntax"
    assert time.process_time() - started < 20


def test_many_tags_before_a_long_text_take_linear_time():
    """A text of four times the length takes about four times as long, and not sixteen times."""

    def took(size):
        text = "".join(f"<a{place}>1</a{place}>" for place in range(size // 24))
        text += " word" * (size // 10)
        times = []
        for _ in range(3):
            started = time.thread_time()
            assert isinstance(read("xml", text, None), dict)
            times.append(time.thread_time() - started)
        return min(times)

    assert took(240_000) < 8 * took(60_000)


class Own:
    """A format that somebody wrote, and wrote wrongly."""

    name = "own"

    def __init__(self, parsed, repaired):
        self.parsed, self.repaired = parsed, repaired

    def parse(self, text, schema):
        return self.parsed

    def repair(self, text):
        return self.repaired

    def describe(self):
        return "Write anything."


@pytest.mark.parametrize(
    ("parsed", "repaired", "told"),
    [
        ({1, 2}, ("x", []), r"`parse` of the format `own` returned .* \(set\)"),
        ({"a": {1}}, ("x", []), "`parse` of the format `own` returned /a: this is not plain JSON"),
        ({}, "x", r"`repair` of the format `own` returned \"x\" \(str\)"),
        ({}, ("x", None), "`repair` of the format `own` returned"),
    ],
)
def test_a_mistake_in_a_format_is_no_fault_of_the_model(parsed, repaired, told):
    """The developer is told which method returned what; nobody is asked, and nothing is retried."""
    with pytest.raises(TypeError, match=told):
        retry_llm_call(lambda _: "x", "p", output=dict, format=Own(parsed, repaired))
