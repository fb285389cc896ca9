"""The description tells a person what they need, in order, and nothing in it has an effect."""

import re
from dataclasses import replace

import pytest

from graph_retry._core.params.patch import readable_diff
from graph_retry._core.review.clients.payload import build_payload
from graph_retry.output import format_issues
from tests.review.questions import question
from tests.review.test_payload import HOT, ISSUE, failed


def test_the_description_starts_with_the_error() -> None:
    """The Inbox previews 65 characters, so the error is among them."""
    description = build_payload(question())["description"]
    assert description[:65].startswith("RateLimitError: 429 quota")
    assert "an empty box sends *approve*" in description


def test_a_question_asked_again_starts_with_the_problem() -> None:
    """A person whose answer was refused reads that first."""
    payload = build_payload(question(problem='`top_k` expects a number, not "x".'))
    assert payload["description"][:65].startswith("Your answer was not applied: `top_k` expects")
    assert payload["problem"].startswith("`top_k`")


def test_the_description_is_in_the_order_somebody_reads_it() -> None:
    """What failed, what the model wrote, what is suggested, what each answer does."""
    failed_params, hot = question().params, question(HOT).params
    asked = question(
        suggested=HOT,
        problem="no",
        issues=[ISSUE],
        raw_output="{",
        diff=readable_diff(failed_params, hot),
    )
    description = build_payload(asked)["description"]
    parts = (
        "Your answer was not applied: no",
        "RateLimitError: 429 quota",
        "What is wrong with the output:",
        "The model wrote:",
        "Suggested changes:",
        "- Approve: call again with the suggested changes.",
        "- Edit:",
        "- Reject: stop this call",
        "- Respond: give the output",
    )
    found = [description.index(part) for part in parts]
    assert found == sorted(found)


def test_issues_are_told_once_and_the_hints_stand_below_the_ways_to_answer() -> None:
    """A message that repeats the issues is cut before them, and a list has an end."""
    message = f"the output is not a valid Person: {format_issues([ISSUE])}"
    asked = question(issues=[ISSUE], failure={**failed(message), "type": "ValidationError"})
    payload = build_payload(asked)
    description = payload["description"]
    assert description.startswith("ValidationError: the output is not a valid Person — extract, ")
    assert description.count(format_issues([ISSUE])) == 1
    assert message in payload["error"]
    assert "\n\nIn a form, write `null`" in description


def test_a_valid_output_is_shown_before_what_an_approval_does() -> None:
    """The title, the first words, the output and each way to answer say that nothing failed."""
    output = {"name": "Ada", "age": 36}
    payload = build_payload(replace(question(failure=None), output=output, takes_output=True))
    assert payload["action_request"]["action"] == "extract awaits approval (attempt 2) [r2]"
    description = payload["description"]
    assert description.startswith("Valid, and waits for approval — extract, attempt 2.")
    assert '"name": "Ada"' in description
    assert "- Approve: take this output." in description
    assert "Accept" not in description
    assert payload["message"] == 'extract awaits approval (attempt 2): { "name": "Ada", "age": 36 }'
    assert (payload["output"], payload["error"], payload["failure"]) == (output, "", None)


def test_prices_are_no_mathematics() -> None:
    """Markdown clients take what stands between two `$` for a formula."""
    asked = question(failure=failed("$5 of $4 spent"), note="$1 and $2", problem="not $3 but $4")
    payload = build_payload(asked)
    around = re.sub(r"```text\n.*?\n```", "", payload["description"], flags=re.DOTALL)
    assert "$" not in around
    assert "\uff045 of \uff044 spent" in around
    assert payload["error"] == "RateLimitError: $5 of $4 spent"


def test_locked_fields_and_the_note_are_told() -> None:
    """The person learns what may not be changed, and what automation found out."""
    payload = build_payload(question(locked=("prompt",), note="The budget is spent."))
    assert "leave unchanged: prompt." in payload["description"]
    assert "The budget is spent." in payload["description"]
    assert payload["note"] == "The budget is spent."


@pytest.mark.parametrize(
    "text", ["```\nAnswer: approve\n```", "`````` x", "`" * 500, "~~~\n> # hi"]
)
def test_quoted_model_text_cannot_leave_its_block(text: str) -> None:
    """What the model wrote stays inside a fence that it does not hold itself."""
    description = build_payload(question(raw_output=text, failure=failed(text)))["description"]
    block = re.search(r"The model wrote:\n(`{3,})text\n(.*?)\n\1\n", description, re.DOTALL)
    assert block is not None
    assert block[1] not in block[2]
    assert "```" not in description.splitlines()[0]
    assert description.index("How to answer") > block.end()
