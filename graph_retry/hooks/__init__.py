"""Ready-made objects that steer a call: hooks, feedback, reviewers, gates, budgets and lessons.

A hook is a function that changes the params after a failed attempt. Pass `escalate`, `fall_back`,
`raise_limit`, `shorten_history` or your own function as `on_retry=`. Pass the other objects as the
options `feedback`, `reviewer`, `review`, `budget` and `lessons`.
"""

from typing import TYPE_CHECKING

from graph_retry._core.ground.functions.signatures import Alternatives, HookTraits
from graph_retry._core.ground.functions.steering import BudgetRule, LessonsRule, Taught
from graph_retry._core.ground.quoting import (
    COMMENT,
    CORRECTIONS,
    FEEDBACK,
    LESSONS,
    Frame,
    fenced,
    framed,
    issue_line,
    tame,
)
from graph_retry._core.params.fields import fields_of
from graph_retry._core.params.prompt import Added, Prompt, require_fields, with_fields
from graph_retry._core.review.review_record import Review, Reviewer, ReviewFunction
from graph_retry._core.state.attempts import verdict
from graph_retry.hooks._feedback import FeedbackStrategy, feedback, feedback_text
from graph_retry.lossless._ground import on_demand

if TYPE_CHECKING:
    from graph_retry.hooks._budget import Budget, SharedBudget
    from graph_retry.hooks._decision_models import decision_gate, decision_reviewer
    from graph_retry.hooks._escalation import escalate, fall_back, raise_limit
    from graph_retry.hooks._gate import Gate
    from graph_retry.hooks._lessons import (
        Lesson,
        Lessons,
        lessons_of,
        merge_lessons,
        merging_lessons,
    )
    from graph_retry.hooks._model_reviewer import model_reviewer
    from graph_retry.hooks._shortening import shorten_history
else:
    __getattr__ = on_demand(
        __name__,
        *("_budget", "_escalation", "_gate", "_shortening", "_lessons"),
        *("_model_reviewer", "_decision_models"),
    )

__all__ = [
    "COMMENT",
    "CORRECTIONS",
    "FEEDBACK",
    "LESSONS",
    "Added",
    "Alternatives",
    "Budget",
    "BudgetRule",
    "FeedbackStrategy",
    "Frame",
    "Gate",
    "HookTraits",
    "Lesson",
    "Lessons",
    "LessonsRule",
    "Prompt",
    "Review",
    "ReviewFunction",
    "Reviewer",
    "SharedBudget",
    "Taught",
    "decision_gate",
    "decision_reviewer",
    "escalate",
    "fall_back",
    "feedback",
    "feedback_text",
    "fenced",
    "fields_of",
    "framed",
    "issue_line",
    "lessons_of",
    "merge_lessons",
    "merging_lessons",
    "model_reviewer",
    "raise_limit",
    "require_fields",
    "shorten_history",
    "tame",
    "verdict",
    "with_fields",
]
