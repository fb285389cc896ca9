"""Read a decision: from the command's options, from typed lines, from an editor."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from graph_retry._json import is_object
from graph_retry._review.clients.client import spelled
from graph_retry._review.decisions import (
    ROWS,
    WORDS,
    Decision,
    accept,
    approve,
    comment,
    edit,
    reject,
    respond,
)
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._wording import did_you_mean
from graph_retry.cli.exits import ExitCode, Stop


class UnreadableError(ValueError):
    """What was typed decides nothing; the text says why."""


def from_options(
    shown: dict[str, Any],
    *,
    changes: Sequence[str] = (),
    reason: str | None = None,
    output: str | None = None,
    words: str | None = None,
    accepted: str | None = None,
) -> Decision:
    """Return the decision that the options of `answer` make; with none it is an approval.

    Raises:
        Stop: If one cannot be read.

    Example:
        >>> from_options({"n": 1}, changes=["n=2"])
        {'type': 'edit', 'params': {'n': 2}}
    """
    try:
        if changes:
            return edit(edited(shown, changes))
        if output is not None:
            return respond(_read_output(output))
    except UnreadableError as error:
        raise Stop(ExitCode.USAGE, str(error)) from None
    said = next((text for text in (reason, words, accepted) if text is not None), "")
    said = _from_stdin() if said == "-" else said
    if words is not None:
        return comment(said)
    if accepted is not None:
        return accept(said or None)
    return approve() if reason is None else reject(said or None)


def from_words(words: Sequence[str], shown: dict[str, Any]) -> Decision:
    """Return the decision of words behind the thread, such as `reject too dear`.

    Raises:
        Stop: If they are none.

    Example:
        >>> from_words(["edit", "n=2"], {"n": 1})
        {'type': 'edit', 'params': {'n': 2}}
    """
    row = ROWS.get(WORDS.get(spelled(words[0]), ""))
    rest = [word for word in words[1:] if row is None or word != f"--{row.data}"]
    if unknown := next((word for word in (words[0], *rest) if word.startswith("--")), None):
        raise Stop(ExitCode.USAGE, f"no such option: {unknown}.")
    if row is None:
        text = shlex.join(words)
        why = f"put quotes around a text of several words: {text!r} stands apart."
        if "=" in words[0]:
            why = f"write the change as: `--set {text}`."
        raise Stop(ExitCode.USAGE, why)
    text = shlex.join(rest) if row.data == "params" else " ".join(rest)
    try:
        return from_line(f"{words[0]} {text}", shown)
    except UnreadableError as error:
        raise Stop(ExitCode.USAGE, str(error)) from None


def labels_of(given: Sequence[str]) -> dict[str, str]:
    """Read `name=text` labels.

    Raises:
        Stop: If one is not written like this.

    Example:
        >>> labels_of(["tenant=acme"])
        {'tenant': 'acme'}
    """
    labels: dict[str, str] = {}
    for label in given:
        name, sign, text = label.partition("=")
        if not sign or not name:
            raise Stop(ExitCode.USAGE, f"{label!r} is no label: write name=text.")
        labels[name] = text
    return labels


def ways(offered: Sequence[str], *, of_valid: bool = False) -> str:
    """List what can be typed, about a failure or about a valid output."""
    rows = [ROWS[kind] for kind in offered]
    helps = [(of_valid and row.typed_of_valid) or row.typed for row in rows]
    return "\n".join(f"  {line}" for line in (*helps, "Ctrl-C              leave it"))


@dataclass
class Draft:
    """What somebody saved in their editor, to go on with if it is not taken."""

    text: str | None = None


def from_line(line: str, shown: dict[str, Any], draft: Draft | None = None) -> Decision:
    """Return the decision somebody typed; `edit` alone opens their editor.

    Raises:
        UnreadableError: If it is none.

    Example:
        >>> from_line("reject too dear", {})
        {'type': 'reject', 'message': 'too dear'}
    """
    word, _, rest = line.strip().partition(" ")
    kind, rest = WORDS.get(spelled(word)), rest.strip()
    if kind is None:
        meant = f" To change params: edit {line}" if "=" in word else did_you_mean(word, (*ROWS,))
        raise UnreadableError(f"{word!r} is none of {', '.join(ROWS)}.{meant}")
    if kind == "approve" and rest:
        raise UnreadableError(f"approve takes what is shown; to change some: edit {rest}")
    data: dict[str, Any] = {ROWS[kind].data or "message": rest or None}
    if kind == "edit":
        data = {"params": _changed(rest, shown) if rest else in_editor(shown, draft or Draft())}
    elif kind == "respond":
        data = {"output": _read_output(rest)}
    elif kind == "approve":
        data = {}
    return cast("Decision", {"type": kind, **data})


def _changed(text: str, shown: dict[str, Any]) -> dict[str, Any]:
    try:
        return edited(shown, shlex.split(text))
    except ValueError as error:
        how = "An edit is written as: edit model=large prompt='Read the invoice.'"
        raise UnreadableError(f"{how} ({error})") from None


def edited(shown: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Read `field=value` changes.

    A value is read as JSON if it is JSON, else as text. Over a field that shows text, all but
    `null` stays as typed.

    Raises:
        UnreadableError: If one is not written like this.

    Example:
        >>> edited({"seed": 1, "zip": "07"}, ["seed=2", "zip=08"])
        {'seed': 2, 'zip': '08'}
    """
    fields: dict[str, Any] = {}
    for change in changes:
        name, sign, text = change.partition("=")
        if not sign or not name:
            raise UnreadableError(f"{change!r} is no change: write field=value.")
        fields[name] = _value(text, shown.get(name))
    return fields


def in_editor(shown: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Let somebody change the params as JSON in their editor; return the fields they changed.

    The editor opens on the draft, if there is one. What they save becomes the draft.

    Raises:
        UnreadableError: If what they saved is no such edit.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    text = draft.text or json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "params.json"
        file.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - theirs
            draft.text = file.read_text(encoding="utf-8")
            after = read_json(draft.text)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnreadableError(f"the editor {editor!r} failed ({error}): set EDITOR.") from None
        except ValueError as error:
            raise UnreadableError(
                f"what was saved is no JSON ({error}). Type edit to mend it."
            ) from None
    if not is_object(after):
        raise UnreadableError("what was saved is no JSON object of the params.")
    if missing := next(_missing(shown, after), None):
        raise UnreadableError(f"`{missing}` is missing: a field can be changed, not removed.")
    changed = {name: value for name, value in after.items() if shown.get(name, ...) != value}
    if not changed:
        draft.text = None
        raise UnreadableError("nothing was changed.")
    return changed


def _missing(before: dict[str, Any], after: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield what was removed: edits are merged onto what was shown, so it would stay."""
    for name, value in before.items():
        if name not in after:
            yield path + name
        elif is_object(value) and is_object(after[name]):
            yield from _missing(value, after[name], f"{path}{name}.")


def _value(text: str, before: Any) -> Any:
    if isinstance(before, str):
        return None if text == "null" else text
    try:
        return read_json(text)
    except NotJsonError:
        return text


def _read_output(name: str) -> str:
    """Return JSON as it is, or a file's text; the library reads it where the output is no text."""
    if not name:
        raise UnreadableError("An output is given as: respond FILE, or respond {…}.")
    if name[0] in '{["':
        return name
    try:
        text = _from_stdin() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"the output cannot be read: {error}.") from None
    return text.removesuffix("\n")


def _from_stdin() -> str:
    return sys.stdin.read().removesuffix("\n")
