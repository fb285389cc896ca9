"""Read a decision from the arguments of a command, from a typed line, or from an editor."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jsonpointer import EndOfList, JsonPointerException, resolve_pointer

from graph_retry.desk.changed import edited_fields, removed_field
from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.plugins import (
    NotJsonError,
    apply_patch,
    as_repr,
    did_you_mean,
    error_text,
    is_object,
    pointer,
    pointer_parts,
    read_json,
)
from graph_retry.reviews import DECISIONS, Decision, Review, decision_named


class UnreadableError(ValueError):
    """A typed text is not a decision. The message is the reason."""


def from_words(words: Sequence[str], shown: dict[str, Any], output: Any = None) -> Decision:
    """Read the decision in the arguments after the thread, such as `reject too dear`.

    If the text is `-`, it is read from standard input.

    Raises:
        Stop: If the words are not a decision.

    Example:
        >>> from_words(["edit", "n=2"], {"n": 1})
        {'type': 'edit', 'params': {'n': 2}}
    """
    row = DECISIONS.get(decision_named(words[0]) or "")
    if unknown := next((word for word in words if word.startswith("--")), None):
        meant = DECISIONS.get(unknown[2:]) and f" Write {unknown[2:]} without the dashes."
        raise Stop(ExitCode.USAGE, f"no such option: {unknown}.{meant or ''}")
    rest = list(words[1:])
    if row and row.data != "output" and rest == ["-"]:
        rest = [sys.stdin.read().removesuffix("\n")]
    is_edit = row is not None and row.data == "params"
    text = shlex.join(rest) if is_edit else " ".join(rest)
    try:
        is_complete = "=" in text or _object(text) is not None
        if is_edit and not is_complete and not sys.stdin.isatty():
            came = f", not {text:.80}" if text else ""
            raise UnreadableError(f"An edit is written as: edit field=value …{came}")
        return from_line(f"{words[0]} {text}", shown, output=output)
    except UnreadableError as error:
        raise Stop(ExitCode.USAGE, str(error)) from None


_OF_THE_PROMPT = """\
  skip                leave this one open, and go to the next
  help                show this list; ? does the same
  Ctrl-C              stop here; open reviews stay open
Type edit alone to change params in $EDITOR, and edit FIELD to open one text there.
The beginning of a word is enough, if no other word here begins with it."""


def ways(offered: Sequence[str], review: Review) -> str:
    """List the decisions that can be typed to answer a review, with the effect of each."""
    lines: list[str] = []
    for kind in offered:
        first, *others = (f"{kind} {typed}".strip() for typed in DECISIONS[kind].typed)
        also = "".join(f", {other}" for other in others).replace(",", "; or:", 1)
        lines.append(f"  {first:<20}{DECISIONS[kind].does(review)}{also}")
    return "\n".join([*lines, _OF_THE_PROMPT])


def completed(line: str, offered: Sequence[str]) -> str:
    """Complete the first word of a typed line, if only one offered word begins with it.

    Raises:
        UnreadableError: If several offered words begin with the typed word.

    Example:
        >>> completed("rej too dear", ["approve", "reject", "respond"])
        'reject too dear'
    """
    word, space, rest = line.partition(" ")
    begun = word.rstrip(".!:").casefold()
    found = [known for known in (*offered, "skip", "help") if known.startswith(begun)]
    if word == "?" or begun in ("skip", "help"):
        return "help" if word == "?" else begun
    if decision_named(word) or not begun or not found:
        return line
    if len(found) > 1:
        raise UnreadableError(f"{as_repr(word)} may be {' or '.join(found)}: type one more letter.")
    return f"{found[0]}{space}{rest}"


@dataclass
class Draft:
    """The text that a person saved in an editor. After a refusal, the editor opens this text again.

    `path` is the JSON Pointer of the opened text, or "" for all params as JSON.
    """

    text: str | None = None
    path: str = ""


def from_line(
    line: str,
    shown: dict[str, Any],
    draft: Draft | None = None,
    offered: Sequence[str] = (*DECISIONS,),
    output: Any = None,
) -> Decision:
    """Read the decision in a typed line. An error lists the words in `offered`.

    `edit` opens the params in an editor, and `edit NAME` opens the text with this name. Changes
    after `edit` name fields of `shown`. Changes after `respond` name fields of `output`.

    Raises:
        UnreadableError: If the line is not a decision.

    Example:
        >>> from_line("reject too dear", {})
        {'type': 'reject', 'message': 'too dear'}
    """
    word, _, rest = line.strip().partition(" ")
    kind, rest = decision_named(word), rest.strip()
    if kind is None:
        meant = (
            f" To change params: edit {line}" if "=" in word else did_you_mean(word, (*offered,))
        )
        raise UnreadableError(
            f"{as_repr(word)} is not a decision: choose from {', '.join(offered)}.{meant}"
        )
    row = DECISIONS[kind]
    if row.data == "params":
        data: dict[str, Any] = {"params": _edit(rest, shown, draft or Draft())}
    elif row.data == "output":
        data = _output(rest, output if is_object(output) else {})
    elif "choice" in row.parts:
        if rest and not rest.isdecimal():
            raise UnreadableError(
                f"{kind} takes only the number of an alternative, not {as_repr(rest, 80)}. To "
                f"change params: edit {rest:.80}"
            )
        data = {"choice": int(rest)} if rest else {}
    elif not rest and (row.data or row.message == "needed"):
        raise UnreadableError(f"{kind} is written as: {kind} {row.typed[0]}")
    else:
        data = {row.data or "message": rest or None}
    return cast("Decision", {"type": kind, **data})


def _edit(rest: str, shown: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Return the changed fields, from `rest` or from an editor.

    The editor opens the text that `rest` names, or all params as JSON if `rest` is empty. If there
    is a draft of the same content, the editor opens the draft. The saved text is the new draft.
    """
    if given := _object(rest):
        return given
    name = rest or (next(iter(shown)) if len(shown) == 1 else "")
    path = name if name.startswith("/") else pointer((name,))
    text = None if "=" in name else _text_at(shown, path)
    if rest and text is None:
        how = "An edit is written as: edit model=large prompt='Read the invoice.'"
        with _written(how):
            return edited(shown, _changes(rest))
    path = "" if text is None else path
    if draft.text is None or draft.path != path:
        draft.path = path
        draft.text = json.dumps(shown, indent=2, ensure_ascii=False) if text is None else text
    draft.text = _saved(draft.text, "text.txt" if path else "params.json")
    if path:
        after = apply_patch(shown, [{"op": "replace", "path": path, "value": draft.text}])
    else:
        after = _read_params(draft.text, shown)
    if not (changed := edited_fields(shown, after)):
        draft.text = None
        raise UnreadableError("nothing was changed.")
    return changed


@contextmanager
def _written(how: str) -> Generator[None]:
    """If changes cause an error, add to its message how to write changes."""
    try:
        yield
    except ValueError as error:
        reason = error_text(error)
        stop = "" if reason.endswith((".", "?")) else "."
        raise UnreadableError(f"{reason}{stop} {how}") from None


def _object(text: str) -> dict[str, Any] | None:
    """Read changes from one JSON object, with or without the quotes of a shell."""
    with suppress(ValueError):
        words = shlex.split(text)
        for each in (text, *words) if len(words) == 1 else (text,):
            with suppress(NotJsonError):
                return given if is_object(given := read_json(each)) else None
    return None


def _changes(text: str) -> list[str]:
    """Split a text into changes. The value of a single change may be a JSON object or list."""
    with suppress(NotJsonError):
        if isinstance(read_json(text.partition("=")[2]), dict | list):
            return [text]
    return shlex.split(text)


def edited(
    shown: dict[str, Any], changes: Sequence[str], *, texts_stay: bool = True
) -> dict[str, Any]:
    """Read `field=value` changes.

    A value that is JSON is read as JSON. Any other value is a text. With `texts_stay`, a field that
    shows a text gets the typed text, except for `null`. A JSON Pointer in place of a field's name
    means a value inside the field. The whole field is then sent.

    Raises:
        UnreadableError: If a change is not written as `field=value`, or has a pointer to a missing
            value.

    Example:
        >>> edited({"seed": 1, "zip": "07"}, ["seed=2", "zip=08"])
        {'seed': 2, 'zip': '08'}
        >>> edited({"rows": [{"n": 1}, {"n": 2}]}, ["/rows/0/n=3"])
        {'rows': [{'n': 3}, {'n': 2}]}
    """
    fields: dict[str, Any] = {}
    for change in changes:
        name, sign, text = change.partition("=")
        if not sign or not name:
            known = name in shown
            meant = " Leave no spaces around `=`." if known else did_you_mean(name, (*shown,))
            raise UnreadableError(f"{as_repr(change)} is not a change: write field=value.{meant}")
        if name in shown or not name.startswith("/"):
            fields[name] = _value(text, shown.get(name) if texts_stay else None)
            continue
        after, top = {**shown, **fields}, pointer_parts(name)[0]
        before = _at(after, name)
        if before is ...:
            raise UnreadableError(f"there is no value at {name}.")
        value = _value(text, before if texts_stay else None)
        patch = [{"op": "replace", "path": name, "value": value}]
        fields[top] = apply_patch(after, patch)[top]
    return fields


def _text_at(shown: dict[str, Any], path: str) -> str | None:
    """Return the text at a path such as `/messages/0/content`; None if there is no text."""
    value = _at(shown, path)
    return value if isinstance(value, str) else None


def _at(shown: dict[str, Any], path: str) -> Any:
    """Return the value at a path; `...` if there is no value."""
    with suppress(JsonPointerException):
        found = resolve_pointer(shown, path, ...)
        return ... if isinstance(found, EndOfList) else found
    return ...


def _saved(text: str, name: str) -> str:
    """Open a text in the person's editor. Return the saved text without its last line break."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(f"{text}\n", encoding="utf-8", newline="")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - theirs
            return file.read_bytes().decode().removesuffix("\n")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise UnreadableError(
                f"the editor {as_repr(editor)} failed ({error_text(error)}): set EDITOR to "
                "another one."
            ) from None


def _read_params(text: str, shown: dict[str, Any]) -> dict[str, Any]:
    try:
        after = read_json(text)
    except NotJsonError as error:
        raise UnreadableError(
            f"the saved text is not JSON ({error}). Type edit to correct it."
        ) from None
    if not is_object(after):
        raise UnreadableError("the saved text is not a JSON object of the params.")
    if missing := removed_field(shown, after):
        raise UnreadableError(
            f"`{missing}` is missing: put it back, because an edit cannot remove fields."
        )
    return after


def _value(text: str, before: Any) -> Any:
    if isinstance(before, str):
        return None if text == "null" else text
    with suppress(NotJsonError):
        return read_json(text)
    return text


def _output(given: str, shown: dict[str, Any]) -> dict[str, Any]:
    """Read an output from typed JSON, `field=value` changes, a file, or standard input (`-`).

    A number, `true`, `false` and `null` are JSON, even if a file has this name. Changes may begin
    with a path only if the path leads to a value in the shown output.
    """
    if not given:
        raise UnreadableError("An output is given as: respond FILE, or respond {…}.")
    if given[0] in '{["':
        return {"output": given}
    with suppress(NotJsonError):
        return {"output": read_json(given)}
    path, sign, _ = given.partition("=")
    leads_in = path.startswith("/") and _at(shown, path) is not ...
    is_drop = given[0] == "-" and given != "-"
    if is_drop or (sign and (leads_in or re.fullmatch(r"[^\W\d]\w*", path))):
        how = "Fields of the output are written as: respond total=7 name='Ada Lovelace' -unknown"
        with _written(how):
            return _changed_output(shown, _changes(given))
    try:
        text = sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        how = "respond takes the name of a file, - for standard input, JSON, or FIELD=VALUE"
        raise UnreadableError(f"the output cannot be read ({error_text(error)}): {how}.") from None
    return {"output": text.removesuffix("\n")}


def _changed_output(shown: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Read changes of the shown output. A word such as `-km` removes this key.

    Raises:
        UnreadableError: If a change is written wrongly, or a removed key is not in the output.
    """
    drops = [word[1:] for word in words if word.startswith("-")]
    # The error may be that a value is a text. Therefore a new value need not be a text.
    changes = [word for word in words if not word.startswith("-")]
    fields = edited(shown, changes, texts_stay=False)
    paths = [pointer((name,)) if name in shown else name for name in drops]
    for name, path in zip(drops, paths, strict=True):
        if not path.startswith("/") or _at(shown, path) is ...:
            raise UnreadableError(f"there is no value at {name}.{did_you_mean(name, (*shown,))}")
    return ({"changes": fields} if fields else {}) | ({"drop": paths} if paths else {})
