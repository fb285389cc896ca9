"""The readers that are measured: ours and what one would use instead, each as text to value."""

import contextlib
import importlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from graph_retry.output import parse_output

Outcome = tuple[bool, Any]
"""Whether a value came out, and which."""
Reader = Callable[[str, bool | None], Outcome]


def ours(text: str, complete: bool | None) -> Outcome:
    """Read with this library, told the finish reason."""
    parsed = parse_output(text, complete=complete)
    return parsed.ok, parsed.value


def ours_untold(text: str, _: bool | None) -> Outcome:
    """Read with this library, not told the finish reason."""
    parsed = parse_output(text)
    return parsed.ok, parsed.value


def attempt(read: Callable[[str], Any], *, text_is_nothing: bool = False) -> Reader:
    """Wrap a function that raises where it finds nothing."""

    def reader(text: str, _: bool | None) -> Outcome:
        try:
            value = read(text)
        except Exception:  # noqa: BLE001 - other people's parsers raise anything
            return False, None
        # json_repair answers prose with an empty string
        return (False, None) if text_is_nothing and value == "" else (True, value)

    return reader


def readers() -> tuple[dict[str, Reader], list[str]]:
    """Return the readers that are installed, and the names of those that are not."""
    found: dict[str, Reader] = {
        "graph_retry": ours,
        "graph_retry, untold": ours_untold,
        "json": attempt(json.loads),
    }
    absent: list[str] = []

    def load(name: str, module: str, make: Callable[[Any], Callable[[str], Any]]) -> None:
        try:
            read = make(importlib.import_module(module))
        except (ImportError, AttributeError):
            absent.append(name)
        else:
            found[name] = attempt(read, text_is_nothing=name.startswith("json_repair"))

    load("json_repair", "json_repair", lambda m: m.loads)
    load("json_repair strict", "json_repair", lambda m: lambda t: m.loads(t, strict=True))
    parsers = "langchain_core.output_parsers"
    load("LangChain JsonOutputParser", parsers, lambda m: m.JsonOutputParser().parse)
    partial = "langchain_core.utils.json"
    load("LangChain parse_partial_json", partial, lambda m: m.parse_partial_json)
    load("json5", "json5", lambda m: m.loads)
    for module in ("instructor.utils", "instructor.utils.core", "instructor.v2.core.json"):
        with contextlib.suppress(ImportError, AttributeError):
            extract = importlib.import_module(module).extract_json_from_codeblock
            found["instructor code block"] = attempt(lambda t, e=extract: json.loads(e(t)))
            break
    else:
        absent.append("instructor code block")
    load("partial-json-parser", "partial_json_parser", lambda m: m.loads)
    return found, absent


BAML = """
type JSON = int | float | bool | string | null | JSON[] | map<string, JSON>

client<llm> Client {
  provider openai
  options {
    model "none"
  }
}

function One(text: string) -> JSON {
  client Client
  prompt #"{{ text }}"#
}

function Several(text: string) -> JSON[] {
  client Client
  prompt #"{{ text }}"#
}
"""


def baml() -> Callable[[str, bool], Any] | None:
    """Return BAML's parser for one JSON value or a list of several; None if it is not installed."""
    try:
        module: Any = importlib.import_module("baml_py")
    except ImportError:
        return None
    runtime = module.BamlRuntime.from_files("baml_src", {"readers.baml": BAML}, {})
    context, types = runtime.create_context_manager(), ModuleType("types")

    def read(text: str, several: bool) -> Any:
        name = "Several" if several else "One"
        try:
            return runtime.parse_llm_response(
                name, text, types, types, types, False, context, None, None, {}
            )
        except Exception:  # noqa: BLE001 - it raises its own errors, and others
            return None

    return read


NODE = """
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
const { jsonrepair } = await import(pathToFileURL(process.argv[1]).href);
for await (const line of createInterface({ input: process.stdin })) {
  let out = { ok: false };
  try { out = { ok: true, text: jsonrepair(JSON.parse(line)) }; } catch { /* refused */ }
  console.log(JSON.stringify(out));
}
"""


def jsonrepair(texts: list[str], entry: str) -> Iterator[Outcome]:
    """Read with npm's jsonrepair; `entry` is the path of its ES module.

    Raises:
        FileNotFoundError: Node.js is not installed.
    """
    node = shutil.which("node")
    if node is None:
        raise FileNotFoundError("node")
    lines = "\n".join(json.dumps(text) for text in texts)
    command = [node, "--input-type=module", "-e", NODE, entry]
    done = subprocess.run(command, input=lines, text=True, capture_output=True, check=True)
    for line in done.stdout.splitlines():
        out = json.loads(line)
        try:
            yield out["ok"], json.loads(out["text"]) if out["ok"] else None
        except ValueError:
            yield False, None
