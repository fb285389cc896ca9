"""Tells the site's builder (griffe) facts that it does not read from the code.

- The section `Example:` is what griffe calls `Examples:`.
- The fields of a TypedDict have no heading, because `help()` starts each at the margin.
- A function with the decorator `in_sync` is called without `await`. Its async form is an attribute.
"""

import inspect
import re
from typing import Any

from griffe import Attribute, Class, Docstring, Extension, Function, Object

FIELDS = re.compile(r"^\w+: .*(?:\n(?:\w+: | ).*)*", re.MULTILINE)
TWIN = re.compile(r"async_twin\((\w+)\)")


class Sections(Extension):
    """Gives the sections names that are known, and marks sync functions and their async forms."""

    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        """Remove the mark `async` from a function that sync code calls."""
        if any(str(decorator.value) == "in_sync" for decorator in func.decorators):
            func.labels.discard("async")

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        """Describe the async form of a function."""
        if made := TWIN.fullmatch(str(attr.value)):
            attr.docstring = Docstring(f"Do the same as `{made[1]}`, in async code.", parent=attr)

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
