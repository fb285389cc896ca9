"""Modes of damage from which syntax alone gives the value back."""

import json
import pprint
import random
import re
from collections.abc import Callable
from typing import Any

from bench.repair_documents import dump, leaves, with_text, write

Made = tuple[str, Any] | tuple[str, Any, bool] | None
Mode = Callable[[random.Random, Any], Made]
EXACT: dict[str, Mode] = {}


def exact(name: str) -> Callable[[Mode], Mode]:
    """Register a mode."""

    def register(mode: Mode) -> Mode:
        EXACT[name] = mode
        return mode

    return register


def around(name: str, *patterns: str) -> None:
    """Register a mode that puts something around the document."""

    def mode(rng: random.Random, value: Any) -> Made:
        return rng.choice(patterns).replace("@", dump(rng, value)), value

    EXACT[name] = mode


F = "```"
around("fence_json", f"{F}json\n@\n{F}", f"{F}JSON\n@\n{F}\n", f"\n{F}json\n@\n{F}\n\n")
around("fence_bare", f"{F}\n@\n{F}")
around("fence_other_tag", f"{F}javascript\n@\n{F}", f"{F}python\n@\n{F}", f"{F}json5\n@\n{F}")
around("fence_tilde", "~~~json\n@\n~~~", "~~~\n@\n~~~")
around("fence_four", f"{F}`json\n@\n{F}`")
around("fence_unclosed", f"{F}json\n@", f"{F}\n@\n")
around("fence_inline", f"{F}json @ {F}", f"{F}@{F}", "`@`")
around(
    "fence_in_prose",
    f"Here is the JSON you asked for:\n\n{F}json\n@\n{F}\n\nLet me know if you need changes!",
    f"I've looked at it.\n{F}\n@\n{F}\n- first point\n- second point",
)
around("fence_indented", f"  {F}json\n  @\n  {F}")
around("prose_before", "Sure! Here you go:\n@", "The result is: @", "Based on the text,\n\n@")
around("prose_after", "@\n\nI hope this helps!", "@\nLet me know.", "@ Done.")
around("prose_both", "Of course.\n\n@\n\nAnything else?", "Answer: @. That is all.")
around("prose_braces", "I fill in {name} and {id}.\n@", "@\nReplace {placeholder} as you like.")
around("prose_quotes", 'You said "extract it", so:\n@', "@\nThe \"name\" field is 'unknown'.")
around("prose_citations", "According to [1] and [2, 3]:\n@", "@\n\nSources: [1], [2].")
around("prose_apostrophe", "Here's what I've got, it's short:\n@\nThat's it, don't worry.")
around("leading_json", "json\n@", "JSON: @", "json @")
around("label", "Output: @", "**Answer:**\n@", "### Result\n@", "Final answer: @")
around("assignment", "result = @", "const data = @;", "let x: Foo = @;", "json_data = @\n")
around("call", "print(@)", "callback(@);", "(@)")
around("xml_wrapper", "<answer>@</answer>", "<json>\n@\n</json>", "<output>@</output>\n")
around("special_tokens", "<|im_start|>assistant\n@<|im_end|>", "<s>@</s>", "[INST] ok [/INST] @")
around("harmony", '<|channel|>analysis<|message|>maybe {"a": 1}<|end|><|channel|>final<|message|>@')
around("think", "<think>Let me see.</think>\n@", "<thinking>\nHm, {x}?\n</thinking>\n\n@")
around("think_draft", '<think>First try: {"draft": true}. No.</think>\n@')
around("think_broken", '<think>So {"a": ... maybe [1, 2</think>@')
around("think_no_opener", 'The user wants JSON like {"x": 1}.\n</think>\n\n@')
around("bom", "\ufeff@", "\ufeff\n@\n")
around("zero_width", "\u200b@\u200b", "\u2060@", "@\u200b")
around("single_backticks_prose", "The object is `@` as requested.")
around("extra_brace_end", "@")
around("repeated_fences", f"{F}json\n@\n{F}\n\nAgain:\n\n{F}json\n@\n{F}", "@\n\n@")
around("crlf_around", "\r\n\r\n@\r\n")
around("tool_call", "<tool_call>\n@\n</tool_call>", "[TOOL_CALLS] @")
around("quoted_document", "'@'")


@exact("quoted_document")
def _(_: random.Random, value: Any) -> Made:
    text = json.dumps(value, ensure_ascii=False)
    return (f"'{text}'", value) if "\\" not in text else None


@exact("extra_brace_end")
def _(rng: random.Random, value: Any) -> Made:
    return dump(rng, value) + rng.choice(["}", "}}", "\n}"]), value


@exact("trailing_comma")
def _(rng: random.Random, value: Any) -> Made:
    text = dump(rng, value)
    return re.sub(r"(\s*[}\]])\Z", r",\1", text), value


@exact("trailing_commas_everywhere")
def _(_: random.Random, value: Any) -> Made:
    text = json.dumps(value, indent=2)
    return re.sub(r"([\"\de}\]l])(\n\s*[}\]])", r"\1,\2", text), value


@exact("missing_comma")
def _(rng: random.Random, value: Any) -> Made:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return re.sub(r",\n", lambda m: rng.choice([m[0], "\n"]), text), value


@exact("missing_comma_object")
def _(_: random.Random, value: Any) -> Made:
    return re.sub(r", (?=\"\w+\": )", " ", json.dumps(value), count=1), value


@exact("missing_colon")
def _(_: random.Random, value: Any) -> Made:
    text = json.dumps(value)
    return re.sub(r"(\"\w+\"):", r"\1", text, count=1), value


@exact("equals")
def _(rng: random.Random, value: Any) -> Made:
    return write(value, json.dumps, colon=rng.choice([" = ", " => ", "="])), value


@exact("double_comma_object")
def _(_: random.Random, value: Any) -> Made:
    return re.sub(r", (?=\"\w+\": )", ",, ", json.dumps(value), count=1), value


@exact("leading_comma_object")
def _(_: random.Random, value: Any) -> Made:
    return (json.dumps(value).replace("{", "{, ", 1), value) if isinstance(value, dict) else None


def quoted(text: str, quote: str) -> str:
    """Quote `text`, escaping only what must be."""
    return quote + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"') + quote


def leaf_in(quote: str) -> Callable[[Any], str]:
    """Return a leaf writer with other quotes."""
    return lambda v: quoted(v, quote) if isinstance(v, str) else json.dumps(v)


@exact("single_quotes")
def _(rng: random.Random, value: Any) -> Made:
    if any(isinstance(v, str) and "'" in v for v in leaves(value)):
        return None
    indent = rng.choice([None, 2])
    return write(value, leaf_in("'"), lambda k: f"'{k}'", indent=indent), value


@exact("single_quotes_apostrophe")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, rng.choice(["it's fine", "don't", "the dog's bowl isn't here"]))
    return write(value, leaf_in("'"), lambda k: f"'{k}'"), value


@exact("backtick_strings")
def _(_: random.Random, value: Any) -> Made:
    if any(isinstance(v, str) and ("`" in v or "${" in v) for v in leaves(value)):
        return None
    return write(value, leaf_in("`")), value


@exact("triple_quotes")
def _(rng: random.Random, value: Any) -> Made:
    inner = rng.choice(['He said "hi".', "one\ntwo\nthree", "plain", 'def f():\n    return "x"'])
    value = with_text(rng, value, inner)
    quote = rng.choice(['"""', "'''"])
    spell = lambda v: quote + v + quote if v == inner else json.dumps(v)  # noqa: E731
    return write(value, spell), value


@exact("python_repr")
def _(_: random.Random, value: Any) -> Made:
    return repr(value), value


@exact("python_pprint")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(
        rng, value, " ".join(rng.choice(["lorem", "ipsum", "it's"]) for _ in range(30))
    )
    return pprint.pformat(value, width=60, sort_dicts=False), value


@exact("python_tuples")
def _(_: random.Random, value: Any) -> Made:
    def spell(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: spell(child) for key, child in item.items()}
        return tuple(map(spell, item)) if isinstance(item, list) else item

    return repr({"data": spell(value)}), {"data": value}


@exact("python_literals")
def _(_: random.Random, value: Any) -> Made:
    value = {"flag": True, "gone": None, "doc": value}
    return write(value, lambda v: json.dumps(v) if isinstance(v, str) else repr(v)), value


@exact("literal_case")
def _(rng: random.Random, value: Any) -> Made:
    def spell(v: Any) -> str:
        text = json.dumps(v)
        literal = v is None or isinstance(v, bool)
        return rng.choice([text.upper(), text.capitalize()]) if literal else text

    return write({"flag": True, "doc": value}, spell), {"flag": True, "doc": value}
