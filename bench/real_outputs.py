"""Read what models really wrote, and judge the values by published answers.

Run `python -m bench.real_outputs --bfcl RESULTS --answers POSSIBLE_ANSWERS [--rag RESULTS]
[--baml TESTS] [--jsonrepair INDEX_JS] [--show N]`. BAML's parser is one of the readers if `baml-py`
is installed. No data is kept here; give the paths of checkouts:

- `RESULTS`: a `result` folder of `HuanzhiMao/BFCL-Result`, a folder for each model;
- `POSSIBLE_ANSWERS`: `bfcl_eval/data/possible_answer` of `ShishirPatil/gorilla`;
- `--rag`: `structured_rag/run_test/results` of `weaviate/structured-rag`;
- `--baml`: `engine/baml-lib/jsonish/src/tests` of `BoundaryML/baml`.

A text of BFCL counts if it is no strict JSON and some reader, or the text as a Python literal, or
every balanced object in it taken together, gives calls that the published answer accepts: what the
model got wrong says nothing about a reader. *Right* is a value whose calls are accepted, *wrong*
any other value. The texts of the other two have no published value: there, values are counted that
differ from json_repair's.
"""

import argparse
import ast
import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import json_repair

from bench.markdown import table
from bench.repair_readers import baml, jsonrepair
from bench.repair_score import percent, same
from graph_retry.output import parse_output

CATEGORIES = {
    "simple": ("simple_python", False), "multiple_function": ("multiple", False),
    "parallel_function": ("parallel", True),
    "parallel_multiple_function": ("parallel_multiple", True),
}  # fmt: skip
NAMES = ("name", "function", "tool", "tool_name", "function_name", "api", "api_name", "action")
ARGUMENTS = ("arguments", "parameters", "params", "args", "input", "inputs", "tool_input", "kwargs")
Call = tuple[str, dict[str, Any]]
RAW = re.compile(r'r#+"(.*?)"#+', re.DOTALL)


def calls_in(value: Any) -> list[Call] | None:
    """Return the calls that a value spells, in one of the usual ways; None if it spells none."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(inner := next(iter(value.values())), list):
            return calls_in(inner)
        function = value.get("function")
        value = function if isinstance(function, dict) and len(value) <= 3 else value
        name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), None)
        given = next((value[key] for key in ARGUMENTS if key in value), None)
        if name is None and len(value) == 1:
            ((name, given),) = value.items()
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                given = json.loads(given)
        return [(name, given)] if isinstance(name, str) and isinstance(given, dict) else None
    if isinstance(value, list) and value:
        parts = [calls_in(item) for item in value]
        return None if None in parts else [call for part in parts for call in part or []]
    return None


def plain(value: Any) -> Any:
    """Write a value as BFCL compares it: without case and punctuation, numbers as numbers."""
    if isinstance(value, str):
        return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def is_accepted(call: Call, answer: dict[str, dict[str, list[Any]]]) -> bool:
    """Tell whether a call is one that the published answer lists."""
    ((name, wanted),) = answer.items()
    given = call[1]
    if call[0].replace(".", "_") != name.replace(".", "_") or not given.keys() <= wanted.keys():
        return False
    for key, allowed in wanted.items():
        if given.get(key) is None:
            if "" not in allowed:
                return False
        elif not any(_fits(given[key], each) for each in allowed):
            return False
    return True


def _fits(value: Any, allowed: Any) -> bool:
    if isinstance(value, dict) and isinstance(allowed, dict):
        return value.keys() <= allowed.keys() and all(
            any(_fits(value[key], each) for each in allowed[key]) for key in value
        )
    return bool(plain(value) == plain(allowed))


def is_right(value: Any, answers: list[dict[str, Any]]) -> bool:
    """Tell whether a value has exactly the calls of the published answer, in any order."""
    calls = calls_in(value)
    if calls is None or len(calls) != len(answers):
        return False
    for answer in answers:
        match = next((call for call in calls if is_accepted(call, answer)), None)
        if match is None:
            return False
        calls.remove(match)
    return True


def ours(text: str, several: bool) -> Any:
    """Read with this library, told whether a list is wanted."""
    return parse_output(text, wants_list=several).value


def theirs(text: str, several: bool) -> Any:  # noqa: ARG001
    """Read with json_repair."""
    try:
        return json_repair.loads(text) or None
    except (RecursionError, ValueError):
        return None


def balanced(text: str, several: bool) -> Any:
    """Read a Python literal; of another text, take every object in JSON, or in Python if more."""
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(text.strip())
    python = text
    for literal, spelled in (("'", '"'), ("True", "true"), ("False", "false"), ("None", "null")):
        python = python.replace(literal, spelled)
    found = max(_objects(text), _objects(python), key=len)
    return (found if several else found[0]) if found else None


def _objects(text: str) -> list[Any]:
    found, position = list[Any](), 0
    while (at := text.find("{", position)) >= 0:
        try:
            value, position = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            position = at + 1
        else:
            found.append(value)
    return found


READERS: dict[str, Callable[[str, bool], Any]] = {"graph_retry": ours, "json_repair": theirs}


def texts(results: Path, answers: Path) -> Iterator[tuple[str, bool, list[dict[str, Any]], str]]:
    """Yield the texts of BFCL that are no strict JSON, with what is accepted, and their model."""
    for name, (file, several) in CATEGORIES.items():
        path = next(answers.glob(f"BFCL_v*_{file}.json"))
        accepted = {
            row["id"].rpartition("_")[2]: row["ground_truth"]
            for row in map(json.loads, path.read_text().splitlines())
        }
        for result in sorted(results.glob(f"*/*_test_{name}_result.json")):
            for line in result.read_text().splitlines():
                row = json.loads(line)
                text, number = row["result"], row["id"].rpartition("_")[2]
                if not isinstance(text, str) or "{" not in text or number not in accepted:
                    continue
                with contextlib.suppress(ValueError):
                    json.loads(text)
                    continue
                yield text, several, accepted[number], result.parent.name


def bfcl(results: Path, answers: Path, show: int, node: str) -> None:
    """Print how the readers fare on BFCL."""
    if reader := baml():
        READERS["BAML"] = reader
    if node:
        found = dict.fromkeys(text for text, *_ in texts(results, answers))
        read = dict(zip(found, jsonrepair([*found], node), strict=True))
        READERS["jsonrepair"] = lambda text, _: read[text][1]
    count: Counter[tuple[str, str, str]] = Counter()
    shown: Counter[tuple[str, str]] = Counter()
    for text, several, accepted, model in texts(results, answers):
        values = {name: reader(text, several) for name, reader in READERS.items()}
        right = {name: is_right(value, accepted) for name, value in values.items()}
        if not any(right.values()) and not is_right(balanced(text, several), accepted):
            continue
        group = "several calls" if several else "one call"
        for name, value in values.items():
            verdict = "right" if right[name] else "refused" if value is None else "wrong"
            count[name, group, verdict] += 1
            if name == "graph_retry" and verdict != "right" and shown[model, verdict] < show:
                shown[model, verdict] += 1
                print(f"{verdict}, {model}, {group}: {text!r:.700}\n    {value!r:.200}")
                print(f"    {(parse_output(text, wants_list=several).failure or {})}\n")
    rows = []
    for group in ("one call", "several calls"):
        for name in READERS:
            counts = [count[name, group, verdict] for verdict in ("right", "wrong", "refused")]
            rows.append([group, name, sum(counts), *(percent(n, sum(counts)) for n in counts)])
    print(table(["BFCL", "reader", "texts", "right %", "wrong %", "refused %"], rows))


def others(name: str, found: list[str]) -> None:
    """Print how many texts are read, and how many of the values json_repair has as well."""
    count: Counter[str] = Counter()
    for text in found:
        read = parse_output(text)
        is_alike = same(read.value, theirs(text, False))
        count["refused" if not read.ok else "alike" if is_alike else "different"] += 1
    print(f"\n{name}: {len(found)} texts that are no strict JSON: {dict(count)}")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def broken(found: Iterator[str]) -> list[str]:
    """Keep texts with brackets that are no strict JSON."""
    kept = dict[str, None]()
    for text in found:
        if "{" in text or "[" in text:
            try:
                json.loads(text)
            except ValueError:
                kept[text] = None
    return list(kept)


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description="Read what models really wrote.")
    for name in ("bfcl", "answers", "rag", "baml"):
        arguments.add_argument(f"--{name}", type=Path)
    arguments.add_argument("--jsonrepair", default="", help="the path of jsonrepair's index.js")
    arguments.add_argument("--show", type=int, default=0, help="texts printed for each model")
    options = arguments.parse_args()
    if options.bfcl and options.answers:
        bfcl(options.bfcl, options.answers, options.show, options.jsonrepair)
    if options.rag:
        files = sorted(options.rag.rglob("*.json"))
        outputs = (text for file in files for text in _strings(json.loads(file.read_text())))
        others("structured-rag", broken(outputs))
    if options.baml:
        sources = (file.read_text() for file in sorted(options.baml.glob("*.rs")))
        others("BAML's tests", broken(m[1] for source in sources for m in RAW.finditer(source)))


if __name__ == "__main__":
    main()
