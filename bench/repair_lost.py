"""Modes in which something is missing (`LOSSY`) or there was no JSON to begin with (`NONE`)."""

import json
import random
from collections.abc import Callable
from typing import Any

from bench.repair_documents import NAMES, WORDS, dump, write

Made = tuple[str, Any] | tuple[str, Any, bool] | None
Mode = Callable[[random.Random, Any], Made]
LOSSY: dict[str, Mode] = {}
NONE: dict[str, Mode] = {}
F = "```"


def cut(text: str, rng: random.Random) -> str:
    """Cut a text somewhere before its last bracket."""
    return text[: rng.randint(2, len(text.rstrip(" \n`)>;")) - 1)]


def truncated(spell: Callable[[random.Random, Any], str], complete: bool | None = None) -> Mode:
    """Return a mode that cuts what `spell` wrote; `complete` is what the finish reason says."""

    def mode(rng: random.Random, value: Any) -> Made:
        text = cut(spell(rng, value), rng)
        return (text, None) if complete is None else (text, None, complete)

    return mode


LOSSY["truncated"] = truncated(dump)
LOSSY["truncated_length"] = truncated(dump, complete=False)
LOSSY["truncated_pretty"] = truncated(lambda _, v: json.dumps(v, indent=2))
LOSSY["truncated_fence"] = truncated(lambda r, v: f"{F}json\n{dump(r, v)}")
LOSSY["truncated_prose"] = truncated(lambda r, v: f"Sure, here it is:\n{dump(r, v)}")
LOSSY["truncated_python"] = truncated(lambda _, v: repr(v))
LOSSY["truncated_unquoted_keys"] = truncated(lambda _, v: write(v, json.dumps, str))
LOSSY["truncated_escaped"] = truncated(lambda r, v: json.dumps(dump(r, v))[1:-1])
LOSSY["truncated_in_string"] = truncated(lambda r, v: json.dumps(dump(r, v)))
LOSSY["truncated_think"] = truncated(lambda r, v: f'<think>Try {{"x": 1}}</think>{dump(r, v)}')


def lossy(name: str, complete: bool | None = None) -> Callable[[Callable[..., str | None]], None]:
    """Register a mode of a lossy kind that returns only its text."""

    def register(make: Callable[[random.Random, Any], str | None]) -> None:
        def mode(rng: random.Random, value: Any) -> Made:
            text = make(rng, value)
            if text is None:
                return None
            return (text, None) if complete is None else (text, None, complete)

        LOSSY[name] = mode

    return register


def inside(*fillings: str) -> Callable[[random.Random, Any], str]:
    """Return a maker that puts one of `fillings` at the end of a list inside the document."""

    def make(rng: random.Random, value: Any) -> str:
        text = json.dumps({"doc": value, "items": ["MARK"]}, indent=rng.choice([None, 2]))
        return text.replace('"MARK"', '{"n": 1}, ' + rng.choice(fillings))

    return make


lossy("elided_dots")(inside("...", "…", "..., ", "... "))
lossy("elided_slashes")(inside("// ...\n", "// rest omitted\n", "// and so on\n", "// 97 more\n"))
lossy("elided_hash")(inside("# remaining items\n", "# etc.\n", "# (same for the others)\n"))
lossy("elided_block")(inside("/* 97 more */", "/* ... */", "/* truncated */"))
lossy("elided_unchanged")(inside(
    "// existing users unchanged\n", "/* users 2..98 */", "# the other users\n", "/* unchanged */",
    "\n// more users\n", '{"n": 2, /* same as before */}', "{ /* unchanged */ }",
))  # fmt: skip
lossy("elided_placeholder")(inside("<remaining items>", "<...>", "{...}", "[...]", "[truncated]"))
lossy("elided_dots_complete", complete=True)(inside("...", "…"))


@lossy("elided_members")
def _(rng: random.Random, value: Any) -> str:
    return json.dumps({"doc": value, "x": 1})[:-1] + rng.choice([", ...}", ", … }", ", // more\n}"])


@lossy("elided_after")
def _(rng: random.Random, value: Any) -> str:
    note = ["(97 more items omitted)", "...", "[truncated]", "The rest is omitted for brevity."]
    return dump(rng, value) + "\n" + rng.choice(note)


@lossy("empty_slot")
def _(rng: random.Random, value: Any) -> str:
    return json.dumps({"a": "MARK", "doc": value}).replace(' "MARK"', rng.choice(["", " "]))


@lossy("empty_slot_last")
def _(_: random.Random, value: Any) -> str:
    return json.dumps({"doc": value, "a": "MARK"}).replace('"MARK"', "")


@lossy("empty_slot_list")
def _(rng: random.Random, value: Any) -> str:
    return json.dumps({"doc": value, "a": [1, "MARK", 2]}).replace('"MARK"', rng.choice(["", " "]))


@lossy("placeholder_value")
def _(rng: random.Random, value: Any) -> str:
    filling = rng.choice(["<name>", "...", "{{name}}", "YOUR_NAME", "<your value here>", "TODO"])
    return json.dumps({"doc": value, "a": "MARK"}).replace('"MARK"', filling)


@lossy("two_answers")
def _(rng: random.Random, value: Any) -> str:
    one, two = dump(rng, value), dump(rng, {"other": value})
    return rng.choice([
        f"{F}json\n{one}\n{F}\nor\n{F}json\n{two}\n{F}", f"{one}\nNo, wait:\n{two}",
        f"Example:\n{F}\n{two}\n{F}\nResult:\n{F}\n{one}\n{F}",
    ])  # fmt: skip


@lossy("keys_disagree")
def _(rng: random.Random, value: Any) -> str:
    return '{"n": 1, "doc": ' + dump(rng, value) + ', "n": 2}'


@lossy("two_readings")
def _(_: random.Random, value: Any) -> str:
    return '{"said": ["yes", "she said "no", "maybe" and left"], "doc": ' + json.dumps(value) + "}"


@lossy("two_missing_closers", complete=True)
def _(_: random.Random, value: Any) -> str:
    return '{"doc": [' + json.dumps(value)


@lossy("truncated_lines", complete=False)
def _(_: random.Random, value: Any) -> str:
    return json.dumps({"n": 1, "doc": value}) + '\n{"n": 2}\n'


def sentence(rng: random.Random) -> str:
    """Make a sentence."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 12))).capitalize() + "."


def nothing(name: str, *patterns: str) -> None:
    """Register a mode without JSON; `@` becomes a sentence, `#` a name."""

    def mode(rng: random.Random, _: Any) -> Made:
        text = rng.choice(patterns)
        while "@" in text:
            text = text.replace("@", sentence(rng), 1)
        return text.replace("#", rng.choice(NAMES)), None

    NONE[name] = mode


nothing("prose", "@ @", "@\n\n@ @", "# said: @")
nothing("refusal", "I'm sorry, but I can't help with that.", "As an AI, I cannot do this. @")
nothing("empty", "", " ", "\n\n", "\ufeff")
nothing("citations", "@ [1] @ [2, 3]", "As # [1] showed, @ [2]\n\n[1] #: @\n[2] #: @")
nothing("yaml", "name: #\nage: 3\ntags:\n  - a\n  - b\n", "name: #\ntags: [a, b]\npoint: {x: 1}\n")
nothing("yaml_quoted", 'name: "#"\ntags: ["a", "b"]\nnested:\n  key: "x"\n')
nothing("xml", "<person><name>#</name><age>3</age></person>", '<a href="x">#</a>')
nothing("csv", "name,age\n#,3\n#,4\n", '"name","age"\n"#",3\n')
nothing("markdown_table", "| name | age |\n|---|---|\n| # | 3 |\n")
nothing("markdown_list", "- [ ] @\n- [x] @\n", "1. @\n2. **#**: @")
nothing("markdown_link", "See [the docs](https://example.com/{id}) for # [here][1].")
nothing("template", "Dear {name}, @ {{signature}}", "@ ${value} @ %{x}")
nothing("latex", "\\frac{1}{2} + \\sqrt{x}: @", "The set \\{1, 2, 3\\}. @")
nothing("set_notation", "Let S = {1, 2, 3} and T = {x | x > 0}. @")
nothing("toml", '[section]\nname = "#"\ntags = ["a", "b"]\nage = 3\n')
nothing("ini", "[main]\nname = #\nage = 3\n")
nothing(
    "python_code", "def f(x):\n    return {'a': x, 'b': [1, 2]}\n", f"{F}python\nprint('#')\n{F}"
)
nothing("javascript_code", "function f() { return 1; }", "if (x) { y = [1, 2]; }")
nothing("css", "body { color: red; }\n.a { margin: 0; }")
nothing("sql", "SELECT name FROM users WHERE id IN (1, 2);")
nothing("interval", "The range is [0, 1] or [2, 5). @", "@ (see [Table 1])")
nothing("dialogue", '"Hello," said #. "@"', "#: [laughs] @ [pause]")
nothing("placeholder_only", "[insert answer here]", "<json>", "{your answer}")
nothing("fence_without_json", f"{F}\n@\n{F}", f"{F}bash\nls -la\n{F}", f"{F}json\n{F}")
nothing("think_only", '<think>Maybe {"a": 1}? @', "<think>@</think>")
nothing("emoticons", "@ :] {:", "@ :-} ok")
