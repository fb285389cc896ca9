"""What a person types, and what is answered where no person is."""

import shlex
from typing import Any

from graph_retry import PendingReview, approve, edit, reject, respond

HELP = """\
  approve                   call again with the params as shown, suggestion included
  edit field=value …        change some of them (quote what has spaces)
  reject reason             stop here
  respond {"…": …}          give the output yourself
  Ctrl-C                    leave; the next run continues here"""


def read_answer(line: str) -> Any:
    """Turn a typed line into an answer; what is no word of the demo goes to the library as it is.

    Raises:
        ValueError: If an edit cannot be read as fields and values.
    """
    word, _, rest = line.strip().partition(" ")
    if word == "approve" and not rest:
        return approve()
    if word == "edit":
        return edit(_fields(rest))
    if word == "reject" and rest:
        return reject(rest)
    if word == "respond" and rest:
        return respond(rest)
    return line


def scripted_answer(review: PendingReview) -> str:
    """Answer like a person who first mistypes and then knows better.

    It depends on the review alone, so that a run that was killed goes on in the same way.
    """
    if review.attempt == 1:
        return "edit temperature=0" if review.problem else "edit temprature=0"
    if review.suggested_params and review.attempt < 5:
        return "approve"
    return "reject nobody is at the terminal"


def _fields(text: str) -> dict[str, str]:
    usage = "An edit is written as: edit model=large prompt='Read the invoice.'"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{usage} ({error})") from None
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    if not fields or len(fields) < len(words):
        raise ValueError(usage)
    return fields
