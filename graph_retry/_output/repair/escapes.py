"""What the escapes of a string mean, those of JSON and those that other languages have."""

import re

from graph_retry._output.repair.report import Notes, Unreadable, refuse_if

_HEX = "[0-9a-fA-F]"
# `\u00e9`, `\U0001F600`, `\xe9`, or a backslash before any one character.
_ESCAPE = re.compile(rf"(?s)\\(u{_HEX}{{4}}|U00(?:0{_HEX}|10){_HEX}{{4}}|x{_HEX}{{2}}|.)")
# Escapes of other languages, or of JSON with a digit missing: `\u{1F600}`, `\x4`, `\v`, `\N{DASH}`.
_OTHER_ESCAPES = re.compile(rf"u[{{\dA-Fa-f]|x{_HEX}|v|e\[|N\{{")
# The last four are written in JavaScript, in Markdown and in shells.
_MEANING = dict(zip("\"\\/bfnrt'`_$", "\"\\/\b\f\n\r\t'`_$", strict=True))
# Where a backslash stands before a letter it keeps, it does so before punctuation, too: `\d\.\d`.
_PATTERN = re.compile(r"(?<!\\)(?:\\\\)*\\[dDsSwWpPA]")
# A path of Windows, `C:\new`: its backslashes are no escapes.
_DRIVE = re.compile(r"\s*[A-Za-z]:\\[^\\/\"]")
_CONTROL = re.compile(r"[\x00-\x1f]")
# A line on which a writer who was cut off says that the text goes on.
_RESUMED = re.compile(
    r"(?i)\n[ \t]*(?:[(\[]cont(?:inued|inuing|['’]d|\.)[)\]]|continued:)[ \t\r]*\n"
    # The fence was closed, and another one opened; none began inside of the string.
    r"|\A[^`]*\n```[ \t\r]*\n\s{0,9}```json[ \t\r]*\n"
)


def decode(raw: str, start: int, notes: Notes) -> str:
    """Resolve the escapes of `raw`, which starts at `start`.

    Raises:
        Unreadable: one of them has two readings.
    """
    if _CONTROL.search(raw):
        refuse_if(_RESUMED.search(raw), "ambiguous", start, "A string was cut off and goes on.")
        notes.add("raw_control", start, "control characters inside a string kept as written")
    if "\\" not in raw:
        return raw
    escapes = _Escapes(raw, start, notes)
    value = _ESCAPE.sub(escapes.resolve, raw)
    # In `C:\dir\new`, `\d` is two characters: then `\n` is two, too, where nothing was escaped.
    if escapes.some_resolved and (escapes.some_kept or _DRIVE.match(raw)):
        raise Unreadable("ambiguous", start, "Some backslashes are escapes, others may not be.")
    # `a \quoted\" word`: the quote behind the first backslash may be lost.
    refuse_if(
        escapes.some_kept and escapes.quotes % 2,
        "ambiguous",
        start,
        "An escaped quote may be lost.",
    )
    # Halves of one character, escaped one by one, come together.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


class _Escapes:
    """Resolves the escapes of one string, one by one, and remembers what was done with them."""

    def __init__(self, raw: str, start: int, notes: Notes) -> None:
        self.raw, self.start, self.notes = raw, start, notes
        self.some_kept = self.some_resolved = False
        self.quotes = 0
        self._is_pattern = _PATTERN.search(raw) is not None

    def resolve(self, match: re.Match[str]) -> str:
        """Return what an escape means, or the escape as it is written where it is text."""
        escape, position = match[1], self.start + match.start()
        if len(escape) > 1:
            if escape[0] != "u":
                self._note(position, f"`\\{escape}` is no JSON escape")
            return chr(int(escape[1:], 16))
        if escape in _MEANING:
            self.some_resolved |= escape in "bfnrt\\"
            self.quotes += escape == '"'
            if escape in "'`_$":
                self._note(position, f"`\\{escape}` is no JSON escape")
            return _MEANING[escape]
        if escape == "\n":
            self._note(position, "a string that goes on in the next line")
            return ""
        if not self._is_text(escape, match.start()):
            message = f"The escape `\\{escape}` has two readings."
            raise Unreadable("ambiguous", position, message)
        self.some_kept = True
        self._note(position, f"`\\{escape}` kept as written")
        return match[0]

    def _is_text(self, character: str, position: int) -> bool:
        r"""Tell whether the backslash at `position` stands for itself before `character`.

        It does before a letter, `\d`, unless another language has an escape with that letter.
        Before punctuation, `\*`, only a pattern keeps it: Markdown leaves it out.
        """
        if _OTHER_ESCAPES.match(self.raw[position + 1 : position + 3]):
            return False
        if not character.isascii():
            return False
        return character.isalpha() or (self._is_pattern and not character.isalnum())

    def _note(self, position: int, detail: str) -> None:
        self.notes.add("bad_escape", position, detail)
