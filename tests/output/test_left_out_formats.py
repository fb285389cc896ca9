"""Data that a text in another format than JSON says is left out, and white space that is text."""

import pytest

from graph_retry._core.output.formats.format import format_named, read_as

PERSON = {"properties": {"name": {"type": "string"}, "tags": {"type": "array"}}}
CASES = [
    ("yaml", "tags:\n  - a\n  - b  # 97 more", "elided"),
    ("yaml", "tags:\n  - a\n  # und so weiter", "elided"),
    ("yaml", "tags:\n  - a\n# 其余省略", "elided"),
    ("yaml", "tags:\n  - a\n...", "elided"),  # for YAML, the end of a document
    ("yaml", "name: see http://x.org/#/etc # note", {"name": "see http://x.org/#/etc"}),
    ("yaml", 'name: "x # and so on"', {"name": "x # and so on"}),
    ("yaml", "# remainders of a day\nname: x", {"name": "x"}),
    ("xml", "<name> \u00a0a </name>", {"name": "\u00a0a"}),
]


@pytest.mark.parametrize(("name", "text", "value"), CASES)
def test_what_is_left_out_is_no_data_and_what_is_text_stays(name, text, value):
    """A list that was not written out is refused; a mark inside a text says nothing."""
    written = format_named(name)
    assert written is not None
    read = read_as(written, text, "standard", schema=PERSON, complete=None)
    assert (read.failure["kind"] if read.failure else read.value) == value
