"""Shows the site's builder (griffe) sections in docstrings that it does not know by their names.

`Example:` is what it calls `Examples:`, and the fields of a TypedDict are written without a heading
above them, so that `help()` starts each at the margin.
"""

import inspect
import re
from typing import Any

from griffe import Class, Extension, Object

FIELDS = re.compile(r"^\w+: .*(?:\n(?:\w+: | ).*)*", re.MULTILINE)


class Sections(Extension):
    """Gives the sections names that are known."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a class, function, module or attribute."""
        if obj.docstring is None:
            return
        text = inspect.cleandoc(obj.docstring.value)
        text = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
        if isinstance(obj, Class):
            text = FIELDS.sub(lambda found: f"Attributes:\n{indented(found[0])}", text, count=1)
        obj.docstring.value = text


def indented(text: str) -> str:
    """Indent each line by four spaces."""
    return "\n".join(f"    {line}" for line in text.splitlines())
