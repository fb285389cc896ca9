"""Reads the form of a page as a browser without JavaScript would, and fills it in."""

from html.parser import HTMLParser
from typing import Any


class Form(HTMLParser):
    """The successful controls of the first form with an id, in order, as names and values."""

    def __init__(self, page: str, form_id: str = "answer") -> None:
        super().__init__()
        self.controls: list[list[str]] = []
        self.action = ""
        self._id, self._inside = form_id, False
        self._text: list[str] | None = None
        self._select: tuple[str, list[str]] | None = None
        self.feed(page)
        assert self.action, f"no form {form_id!r} in the page:\n{page}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a control."""
        given: dict[str, Any] = {name: "" if text is None else text for name, text in attrs}
        if tag == "form" and given.get("id") == self._id:
            self._inside, self.action = True, given["action"]
        if not self._inside or "disabled" in given:
            return
        if tag == "input" and given.get("name"):
            if given.get("type") not in ("radio", "checkbox") or "checked" in given:
                self.controls.append([given["name"], given.get("value", "")])
        elif tag == "textarea":
            self._text = []
            self.controls.append([given["name"], ""])
        elif tag == "select":
            self._select = (given["name"], [])
        elif tag == "option" and self._select and ("selected" in given or not self._select[1]):
            self._select = (self._select[0], [given.get("value", "")])

    def handle_endtag(self, tag: str) -> None:
        """Finish a control."""
        if tag == "form":
            self._inside = False
        elif tag == "textarea" and self._text is not None:
            # A browser drops the first line break, and sends the others as CRLF.
            text = "".join(self._text).replace("\r\n", "\n").replace("\r", "\n")
            self.controls[-1][1] = text.removeprefix("\n").replace("\n", "\r\n")
            self._text = None
        elif tag == "select" and self._select is not None:
            name, values = self._select
            self.controls += [[name, value] for value in values[:1]]
            self._select = None

    def handle_data(self, data: str) -> None:
        """Take in the text of a text box."""
        if self._text is not None:
            self._text.append(data)

    def fill(self, ending: str, text: str) -> None:
        """Type into the control whose name ends like this, or choose it where nothing is chosen."""
        found = [control for control in self.controls if control[0].endswith(ending)]
        assert len(found) == 1, (
            f"{ending!r} is {len(found)} of {[name for name, _ in self.controls]}"
        )
        found[0][1] = text

    def press_radio(self, ending: str, value: str) -> None:
        """Choose one of some radio buttons."""
        name = next(name for name, _ in self.controls if name.endswith(ending))
        self.controls.append([name, value])

    def untick(self, ending: str) -> None:
        """Take a tick away."""
        self.controls = [control for control in self.controls if not control[0].endswith(ending)]

    def choose(self, way: str, number: int = 0) -> None:
        """Choose what should happen to a review of the page."""
        keys = [text for name, text in self.controls if name == "review"]
        self.controls = [each for each in self.controls if each[0] != f"{keys[number]}.way"]
        self.controls.append([f"{keys[number]}.way", way])

    def press(self, ending: str) -> None:
        """Press a button that changes the form, by the end of its value."""
        key = next(text for name, text in self.controls if name == "review")
        which, _, what = ending.partition(" ")
        self.controls.append([f"{key}.{which}.do", what])

    def posted(self) -> list[tuple[str, tuple[None, str]]]:
        """Return the form as it is sent, for `files=` of a client: as multipart."""
        return [(name, (None, text)) for name, text in self.controls]


def fields(**given: str) -> dict[str, tuple[None, str]]:
    """Return fields as a browser's form sends them, for `files=` of a client."""
    return {name: (None, text) for name, text in given.items()}
