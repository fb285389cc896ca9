"""A web app on which people read and answer reviews (the extra `web`)."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from graph_retry.desk.web.applying import Runs
from graph_retry.desk.web.page import HERE, Site
from graph_retry.desk.web.pages.alike import answer_alike, outcomes
from graph_retry.desk.web.pages.history_page import find_thread, history, thread
from graph_retry.desk.web.pages.inbox_page import alive, inbox
from graph_retry.desk.web.pages.reviewing import judge, outcome, review, undo, whole_text
from graph_retry.desk.web.pages.team import team
from graph_retry.desk.web.posted import BODY, NotAllowedError
from graph_retry.desk.web.safety import Access, Authorize, Guard, Headers
from graph_retry.desk.web.waiting import Waiting
from graph_retry.plugins import Name, Secret, checked

__all__ = ["Access", "create_app"]


@checked
def create_app(
    source: Any,
    *,
    authorize: Authorize | None = None,
    token: Secret | None = None,
    user: Name | None = None,
    read_only: bool = False,
    config: RunnableConfig | None = None,
    context: Any = None,
    title: str = "Reviews",
    secret: Secret | None = None,
    max_body: int = BODY.most,
) -> Starlette:
    """Make an ASGI app with pages on which people read and answer reviews.

    The app refuses a request if it does not know the sender. It knows the sender by `authorize`,
    `token`, a link to one review, or Starlette's `AuthenticationMiddleware` in the surrounding app.

    By default, the list shows the reviews that expire within a day first, and then three reviews of
    each kind of which many are alike. The search for words reads the first 2,000 characters of the
    params and of the output, as `redact` shows them. The history keeps at most 50,000 calls. A
    draft of more than 100,000 bytes is checked only when it is sent. Without JavaScript, the page
    works without keys, drafts and the live list. With a sync checkpointer, the runs of answered
    threads use worker threads. Otherwise they use the app's event loop.

    Args:
        source: The source of reviews, as in `list_reviews`: a compiled graph, a client of
            `langgraph_sdk`, or a checkpointer (to read reviews only).
        authorize: A sync or async function of each request. It returns the user's name, an `Access`
            with the user's rights, or None (or an empty name) for a user who may see nothing.
        token: A random text. Everybody who opens the app with `?token=…` gets access.
        user: The name of everybody who comes with the token. The ledger records it as `by`.
        read_only: Whether reviews can be read but not answered.
        config: The config of the runs that continue answered threads, as in `list_reviews`.
        context: LangGraph's `context` of the runs that continue answered threads, as in `resume`.
        title: The heading of each page.
        secret: At least 16 random bytes, such as `secrets.token_urlsafe()`. The app accepts links
            of `graph_retry.observers.Links` with the same secret. The secret also signs the logins
            by `token`, which last a week. Such a login stays valid after the token changes.
        max_body: Maximum bytes of a posted form.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from starlette.applications import Starlette
        >>> from starlette.routing import Mount
        >>> def who(request):
        ...     return request.headers.get("x-user")  # set by a proxy that logs people in
        >>> reviews = create_app(InMemorySaver(), authorize=who)
        >>> app = Starlette(routes=[Mount("/reviews", reviews)])
    """
    waiting = Waiting(source, config)
    site = Site(
        waiting=waiting,
        runs=Runs(waiting, context),
        guard=Guard(authorize, token, user, secret),
        title=title,
        is_read_only=read_only or not waiting.inbox.can_answer,
        max_body=max_body,
    )
    return Starlette(
        routes=[
            Route("/", site.answers(inbox)),
            Route("/alive", site.answers(alive)),
            Route("/history", site.answers(history), methods=["GET", "POST"]),
            Route("/team", site.answers(team)),
            Route("/t", site.answers(find_thread), methods=["POST"]),
            Route("/t/{key}", site.answers(thread)),
            Route("/l/{token}", site.guard.by_link),
            Route("/r/{key}", site.answers(review), methods=["GET", "POST"]),
            Route("/r/{key}/a/{name}", site.answers(outcome)),
            Route("/r/{key}/draft", site.answers(judge), methods=["POST"]),
            Route("/r/{key}/text", site.answers(whole_text)),
            Route("/r/{key}/alike", site.answers(answer_alike), methods=["POST"]),
            Route("/r/{key}/alike/{name}", site.answers(outcomes)),
            Route("/r/{key}/a/{name}", site.answers(undo), methods=["POST"]),
            Route("/r/{key}/alike/{name}", site.answers(undo), methods=["POST"]),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        middleware=[Middleware(Headers)],
        exception_handlers={
            NotAllowedError: site.refused,
            404: site.not_found,
            405: site.not_found,
            500: site.failed,
        },
    )
