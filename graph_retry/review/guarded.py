"""Run the caller's own checks on what a person sent, whatever they raise."""

from collections.abc import Callable
from typing import TypeVar

from graph_retry.forms.excerpt import excerpt
from graph_retry.params.invalid import ParamsInvalid
from graph_retry.review.question import UnusableAnswerError
from graph_retry.validate.caught import let_control_flow_through

T = TypeVar("T")


def guarded(check: Callable[[], T], what: str) -> T:
    """Return what `check` returns, and turn an error of its own into an unusable answer.

    A review must not fail on an answer, or the thread repeats that failure for ever.

    Raises:
        ParamsInvalid: As it comes: it says what is wrong with the params.
        UnusableAnswerError: If the check itself broke.

    Example:
        >>> guarded(lambda: 1 / 0, "The output")
        Traceback (most recent call last):
        ...
        graph_retry.review.question.UnusableAnswerError: The output could not be checked: \
ZeroDivisionError: division by zero
    """
    try:
        return check()
    except ParamsInvalid:
        raise
    except Exception as error:  # noqa: BLE001  a validator of the caller's may raise anything
        let_control_flow_through(error)
        text = excerpt(str(error), 200)
        msg = f"{what} could not be checked: {type(error).__name__}: {text}"
        raise UnusableAnswerError(msg) from None
