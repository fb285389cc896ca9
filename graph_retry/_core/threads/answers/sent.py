"""Convert an answer to the JSON form in which a thread saves it; tell that a run did not use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_core import to_json

from graph_retry._core.ground.issues import json_problem
from graph_retry._core.ground.json import is_object
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.langgraph.open_questions import namespace_in
from graph_retry._core.review.deadline import now
from graph_retry._core.state.namespaces import are_namesakes, form_of, outermost
from graph_retry._core.threads.saved.view import Asked
from graph_retry.lossless._ground import error_text, text_of


def noted(answer: Any, review_id: str) -> dict[str, Any]:
    """Return an answer as it is saved: value, time, and `refused` if a part cannot be saved.

    An answer becomes JSON text if no checkpointer can save it as it is, such as a large integer.
    """
    if isinstance(answer, Mapping) and "type" in answer:
        answer = {"review_id": review_id, "channel": "python", **cast("Any", answer)}
    note: dict[str, Any] = {"value": cast("Any", answer), "at": now()}
    try:
        text = to_json(answer, by_alias=False, inf_nan_mode="constants").decode()
        if json_problem(json.loads(text)):
            note["value"] = text
    except ValueError as error:
        if "surrogates" not in text_of(error):
            raise TypeError(f"{_unsaveable(note['value'])} ({error_text(error, 200)}).") from None
        text = json.dumps(note["value"], ensure_ascii=False, default=repr)
        # No storage keeps a lone surrogate. `encode` replaces each one in the keys and the values.
        note["value"] = json.loads(text.encode(errors="replace"))
        note["refused"] = "The answer has half a character (a lone surrogate): type it again."
    return note


def _unsaveable(answer: Any) -> str:
    """Return an error message for an answer that is not JSON. It names the part and the remedy."""
    for key, part in answer.items() if is_object(answer) else ():
        try:
            to_json(part)
        except ValueError:
            if isinstance(part, type):
                return f"`{key}` of the decision is the class `{part.__name__}`: give an object"
            how = "give plain JSON values, and bytes as base64 text"
            return f"`{key}` of the decision cannot be saved as JSON: {how}"
    name = getattr(answer, "__name__", type(answer).__name__)
    how = "give the result of `approve()`, `edit(…)`, `reject(…)` or `respond(…)`, or JSON"
    return f"the decision is {quoted_with_article(name)}: {how}"


def told_kept(answered: Asked, open_now: Sequence[dict[str, Any]], *, is_over: bool) -> str:
    """Explain why an answer was not used: the run did not make the call that had asked."""
    told = [(each["note"], namespace_in(each)) for each in open_now]
    notes = [note for note, place in told if note and are_namesakes(place, answered.namespace)]
    if answered.review_id in [each["review_id"] for each in open_now]:  # A run replaces questions.
        return (
            f"No run has used your answer to `{answered.name}`, which is saved: run the graph with "
            "the input that `resumption` gives, or call `resume(graph, config)`."
        )
    what = f"This run did not make the call of `{answered.name}`, which had asked the question"
    if is_over and not notes:
        return f"{what}. The run has ended, so your answer had no effect."
    asks = ", ".join(f"`{each['function_name']}` ('{each['review_id']}')" for each in open_now)
    now = f" Now the thread waits for an answer to {asks}." if asks else ""
    task, was = outermost(answered.namespace), form_of(answered.namespace)
    ours = {namespace_in(each) for each in open_now if each["function_name"] == answered.name}
    forms = {form_of(place) for place in ours if outermost(place) == task} - {was}
    if len(forms) == 1:
        now += f" Node `{task.name}` was {was} when it asked, and is {forms.pop()} now."
    if notes:  # If only the order of calls changed, nothing needs a repair.
        now += f" Its note says: {notes[0]}."
    return f"{what}. Your answer is kept, and is used when the node makes this call.{now}"
