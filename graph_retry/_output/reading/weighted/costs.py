"""The table of all departures from strict JSON that can be read, each with its cost and reason.

A cost measures how unlikely a departure is: three more points mean ten times less likely. A
departure that occurs at least `HABIT` times in a text is a habit and costs `habit`. Any other costs
`lone`. For example, a text with all strings in `'` has a habit, while one `'` among many `"` may be
an accident. The cheapest reading of a text is accepted if each reading with another value costs at
least `MARGIN` more. To read another spelling, add one row here and one to `SPELLINGS` in `lexis`.
"""

from functools import lru_cache
from typing import NamedTuple

MARGIN = 6
HABIT = 2
ACCIDENT = 12
"""Rows that cost at least this are accidents."""
DOUBTED = 18
"""The maximum cost of a reading with an accident. It rules out a second accident."""


class Row(NamedTuple):
    """One departure from strict JSON; `kind` is its name in the ledger, if that name differs."""

    lone: int
    habit: int
    told: str
    why: str
    kind: str = ""


# fmt: off
NOTATIONS = {
    "single_quotes": Row(3, 0, "string in single quotes", "Python and JavaScript write them"),
    "smart_quotes": Row(3, 0, "string in typographic quotes", "word processors write them",
        "odd_quotes"),
    "backticks": Row(4, 0, "string in backticks", "templates of JavaScript", "odd_quotes"),
    "triple_quotes": Row(3, 0, "string in triple quotes", "Python, for text over lines"),
    "mixed_quotes": Row(9, 1, "string closed by another quote", "alone it is rather a slip",
        "odd_quotes"),
    "python_prefix": Row(8, 0, "`u` before a string left out", "Python 2 printed it"),
    "unquoted_key": Row(7, 0, "key without quotes", "JavaScript; alone a quote may be lost"),
    "unquoted_value": Row(7, 2, "value without quotes", "YAML; alone it may be code"),
    "literal_spelling": Row(3, 0, "literal of another language", "Python's `True` and `None`"),
    "non_finite": Row(3, 0, "number that JSON does not have", "Python and JavaScript print `NaN`"),
    "number_format": Row(5, 0, "number in another spelling", "JSON5's `+1`, `.5` and `0x1F`"),
    "trailing_comma": Row(4, 0, "comma before a closing bracket", "Python and JavaScript allow it"),
    "comment": Row(4, 0, "comment left out", "JSON5 and YAML have them"),
    "equals": Row(6, 0, "`=` for `:`", "TOML, and `=>` of Ruby and PHP", "colon"),
    "full_width": Row(7, 0, "full-width mark", "East Asian keyboards"),
    "tuple": Row(6, 0, "tuple read as a list", "Python"),
    "markdown": Row(2, 0, "emphasis left out", "chat models emphasise values"),
    "concatenation": Row(5, 0, "strings joined by `+`", "JavaScript"),
    "adjacent_lines": Row(6, 0, "adjacent strings joined", "Python's `pprint` wraps so",
        "concatenation"),
    "raw_control": Row(4, 0, "control characters inside a string kept as written",
        "long texts are written with their lines"),
    "bad_escape": Row(5, 0, "escape that JSON does not have", "regular expressions and Markdown"),
    "apostrophe": Row(1, 0, "apostrophe inside single quotes", "`it's` is hard to escape",
        "inner_quotes"),
    "inner_quote": Row(3, 0, "unescaped quotes inside a string", "quoted speech", "inner_quotes"),
    "odd_space": Row(2, 0, "white space that JSON does not have", "copied from a page",
        "white_space"),
    "missing_comma_line": Row(8, 0, "comma supplied at a line break", "line breaks feel like one",
        "missing_comma"),
}
SURPRISES = {  # Surprises need no repair, but they make another reading more likely.
    "layout": Row(5, 5, "indentation that does not fit", "a bracket may be missing or moved"),
    "mixed_layout": Row(3, 0, "members on the bracket's line and below", "compact printers"),
    "cut_at_bracket": Row(5, 5, "text cut off just behind a bracket", "few texts end so"),
    "edge": Row(4, 4, "string that begins or ends like structure", "a quote may be misplaced"),
    "unpaired": Row(7, 7, "lone quote inside a string", "quotes come in pairs"),
    "odd_inner": Row(6, 6, "quote inside a string, not beside a word", "it may be structure"),
    "strong_inner": Row(9, 9, "quote inside a string before structure", "the string ends there"),
    "odd_key": Row(8, 8, "key that contains quotes", "keys are names"),
    "glued": Row(8, 8, "strings joined without a space", "they may be two"),
    "data_comment": Row(9, 9, "comment that looks like data", "a mark may be too much"),
    "odd_word": Row(8, 8, "word that resembles a number or a literal", "a letter may be wrong"),
    "follows": Row(8, 8, "brackets follow the document", "they may belong to it"),
    "prose": Row(1, 1, "left out around the answer", "an answer alone is the usual case"),
}
SLIPS = {  # One mark is missing or too many, but no value changes.
    "extra_comma": Row(6, 6, "comma too many left out", "a member removed while writing"),
    "missing_comma": Row(9, 9, "comma supplied", "forgotten within a line"),
    "missing_colon": Row(9, 9, "colon supplied", "forgotten"),
    "adjacent": Row(10, 10, "adjacent strings joined", "rather a comma is missing",
        "concatenation"),
    "last_closer": Row(7, 7, "closing bracket supplied at the end", "models stop one too early",
        "supplied"),
    "extra_closer": Row(6, 6, "one closing bracket too many left out", "models count badly"),
    "missing_opener": Row(10, 10, "first bracket supplied", "prefilled prompts begin it",
        "supplied"),
}
ACCIDENTS = {  # One mark was lost, added, replaced or moved by mistake.
    "missing_quote": Row(12, 12, "quote supplied", "forgotten", "supplied"),
    "missing_bracket": Row(12, 12, "bracket supplied", "forgotten", "supplied"),
    "mismatched": Row(12, 12, "closing bracket of the other kind", "nesting lost", "supplied"),
    "deleted": Row(13, 13, "mark left out", "any mark may be too many", "extra_mark"),
    "replaced": Row(14, 14, "mark that stands for another", "a neighbour's key", "supplied"),
    "swapped": Row(14, 14, "marks that changed places", "typed too fast", "extra_mark"),
}
LOSSES = {  # These lose data. The text is refused if one is in any of the likeliest readings.
    "elided": Row(2, 2, "Data was left out here", "the text says so", "elided"),
    "placeholder": Row(4, 4, "A placeholder stands for data", "templates", "elided"),
    "code": Row(4, 4, "Arithmetic or a variable's name stands for data: write the value itself",
        "programs compute what they send", "syntax"),
    "empty_slot": Row(7, 7, "A value is missing here", "nothing was known", "elided"),
    "unreadable": Row(13, 13, "A value may be damaged, or out of the range of floats",
        "its first mark is wrong", "ambiguous"),
    "data_lost": Row(9, 9, "A comment may hold data", "its line may have lost a break",
        "ambiguous"),
    "swallowed": Row(15, 15, "A character may belong to a value", "typed beside its place",
        "ambiguous"),
    "escapes": Row(0, 0, "Some backslashes may be no escapes", "paths, patterns", "ambiguous"),
    "truncated": Row(5, 5, "The text ends before the document does", "cut off", "truncated"),
    "truncated_whole": Row(20, 20, "The text ends although the model finished", "it knew its end"),
    "more": Row(14, 14, "More follows than one document", "brackets are wrong", "syntax"),
}
# fmt: on
COSTS = NOTATIONS | SURPRISES | SLIPS | ACCIDENTS | LOSSES


@lru_cache(1000)
def prices(habits: frozenset[str] = frozenset(COSTS), *, complete: bool) -> dict[str, int]:
    """Return the cost of each row: `habit` for the rows in `habits`, and `lone` for the others.

    An early end costs more if the answer is `complete`.
    """
    found = {name: row.habit if name in habits else row.lone for name, row in COSTS.items()}
    found["truncated"] = found["truncated_whole" if complete else "truncated"]
    return {"": 0, **found}
