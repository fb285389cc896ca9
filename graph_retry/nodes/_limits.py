"""Turn the timeout and the retry policy of a LangGraph node into options of its call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.types import RetryPolicy

from graph_retry.options import RetryOptions
from graph_retry.plugins import WrongArgumentError


def limits_of(name: str, spec: Any, given: Mapping[str, Any]) -> RetryOptions:
    """Return the timeout and the retry policy of a node as options of its call.

    Raises:
        WrongArgumentError: If the node has several retry policies, because a call takes only one.
    """
    own: RetryOptions = {}
    if spec.timeout is not None:
        own["timeout"] = spec.timeout
    policies: Any = spec.retry_policy
    policies = [policies] if isinstance(policies, RetryPolicy) else [*(policies or ())]
    if len(policies) > 1 and "transient" not in given:
        raise WrongArgumentError(
            f"node `{name}` has {len(policies)} retry policies, but its call takes only one: "
            "give it as `transient=`, and choose the exceptions with `classify=`."
        )
    if policies:
        policy: RetryPolicy = policies[0]
        own["transient"] = policy._replace(retry_on=RetryPolicy().retry_on)
        own["classify"] = _transient_by(policy.retry_on)
    return own


def _transient_by(retry_on: Any) -> Callable[[Exception], Any]:
    def classify(error: Exception) -> Any:
        if isinstance(retry_on, type):
            is_it = isinstance(error, retry_on)
        elif isinstance(retry_on, Sequence):
            is_it = isinstance(error, tuple(cast("Sequence[type[Exception]]", retry_on)))
        else:
            is_it = retry_on(error)
        return "transient" if is_it else None

    return classify
