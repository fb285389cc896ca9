"""A page of your own for reviews, on public names only: any web framework can do the same."""

import html
import io
import json
from typing import Any
from urllib.parse import parse_qs

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import AnswerRefused, StaleDecision, resume, retry_llm_call
from graph_retry.plugins import NotJsonError, read_json
from graph_retry.reviews import Review, closed_by, foreseen, offered
from graph_retry.threads import list_reviews


def ask(params: dict[str, str]) -> str:
    """Stand in for a model."""
    return "1240.5" if params["model"] == "large" else "EUR 1,240.50"


@entrypoint(checkpointer=InMemorySaver())
def total(document: str) -> float:
    """Read the total of an invoice."""
    return retry_llm_call(ask, {"text": document, "model": "small"}, output=float)


def form_of(review: Review) -> str:
    """Draw a review: its facts, and one form for each decision that it offers."""
    facts = [review.headline, review.error, json.dumps(review.shown)]
    parts = [f"<p>{html.escape(fact)}</p>" for fact in facts]
    hidden = {"thread": review.thread_id or "", "review": review.review_id}
    marks = "".join(f'<input type="hidden" name="{key}" value="{hidden[key]}">' for key in hidden)
    for way in offered(review):
        keys = filter(None, (way.needs, *way.also))
        box = "".join(f'<label>{key}<textarea name="{key}"></textarea></label>' for key in keys)
        button = f'<button name="type" value="{way.word}">{html.escape(way.does)}</button>'
        parts.append(f'<form method="post">{marks}{box}<input name="message">{button}</form>')
    return "\n".join(parts)


def answered(form: dict[str, str]) -> str:
    """Apply a posted form; what does not fit, and what comes late, is told with its reason."""
    config: Any = {"configurable": {"thread_id": form.pop("thread")}}
    review_id = form.pop("review")
    words = ("type", "message", "until", "to")  # The other keys of decisions are JSON.
    known = [each for each in list_reviews(total) if each.review_id == review_id]
    try:
        decision = {key: text if key in words else read_json(text) for key, text in form.items()}
        if wrong := [problem for review in known for problem in foreseen(review, decision)]:
            return "Not yet: " + "; ".join(wrong)
        return f"Done: {resume(total, config, answers={review_id: {**decision, 'by': 'ada'}})}"
    except NotJsonError as error:
        return f"Not yet: this is not JSON ({error})"
    except StaleDecision:
        return f"Too late: {closed_by(total, config, review_id)}"
    except AnswerRefused as refused:
        return f"Not applied: {refused}"


def app(request: dict[str, Any], start: Any) -> list[bytes]:
    """The page, as a WSGI app: `wsgiref.simple_server.make_server("", 8000, app)` serves it."""
    sent = request["wsgi.input"].read(int(request.get("CONTENT_LENGTH") or 0)).decode()
    told = answered({key: texts[0] for key, texts in parse_qs(sent).items()}) if sent else ""
    start("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return ["\n".join([html.escape(told), *map(form_of, list_reviews(total))]).encode()]


total.invoke("400 posters", {"configurable": {"thread_id": "7"}})
(waiting,) = list_reviews(total)
print([way.word for way in offered(waiting)])
for given in ('{"model": 3}', '{"model": "large"}', '{"model": "large"}'):
    sent = f"thread=7&review={waiting.review_id}&type=edit&params={given}".encode()
    request = {"wsgi.input": io.BytesIO(sent), "CONTENT_LENGTH": len(sent)}
    print(app(request, lambda _status="", _headers="": None)[0].decode().partition("\n")[0])
# expect: ['approve', 'edit', 'respond', 'reject']
# expect: Not yet: /model
# expect: Done: 1240.5
# expect: Too late: human:ada
