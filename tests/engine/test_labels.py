"""Labels say whose a call is: in its review, its record, its notification and the inbox."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry.options import settle
from graph_retry.threads import list_reviews
from tests.loops import Model, one_call, reviews, thread

ACME = {"tenant": "acme", "priority": "1"}


def test_labels_ride_along(mode, form):
    """Review, description, notification and ledger have them; they change nothing else."""
    told = []
    model = Model()
    graph = one_call(form, mode, model, InMemorySaver(), labels=ACME, notify=told.append)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.labels == review.value["labels"] == told[0].labels == ACME
    assert review.history[0]["labels"] == ACME
    assert "tenant: acme, priority: 1" in review.value["description"]


SUBJECTS = {
    "a text": ("Order 7", None, "Order 7"),
    "a function": (lambda params: f"order {params['n']}", None, "order 0"),
    "long, in lines": (lambda _: "a\nb " * 200, None, f"{'a b ' * 49}a b…"),
    "private": (lambda _: "of Ada", lambda text: text.replace("Ada", "***"), "of ***"),
    "fails": (lambda params: params["m"], None, None),
    "no text": (lambda params: params["n"], None, None),
    "empty": ("", None, None),
}


@pytest.mark.parametrize("case", SUBJECTS)
def test_a_subject_says_what_the_call_is_about(mode, form, case):
    """A text or a function of the params; redacted, short, and never a reason to fail."""
    subject, redact, said = SUBJECTS[case]
    options = {"subject": subject} | ({"redact": redact} if redact else {})
    graph = one_call(form, mode, Model(), InMemorySaver(), **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.subject == review.value["subject"] == said
    assert review.history[0].get("subject") == said
    assert said is None or said[:100] in review.value["description"]


def test_the_inbox_is_filtered_by_labels():
    """All labels that are asked for must be there, and the limit counts what is left."""
    saver = InMemorySaver()
    for name in ("acme", "bolt", "acme"):
        labels = {"tenant": name, "priority": "1"}
        graph = one_call("node", None, Model(), saver, labels=labels)
        graph.invoke({"params": {"n": 0}}, thread(f"{name} {len(list_reviews(saver))}"))

    def listed(limit=None, **labels):
        found = list_reviews(saver, labels=labels, limit=limit)
        return [review.thread_id for review in found]

    assert listed(tenant="acme") == ["acme 2", "acme 0"]
    assert listed(limit=1, tenant="acme", priority="1") == ["acme 2"]
    assert listed(tenant="acme", priority="2") == []
    assert len(listed()) == 3


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"priority": 1}, "`labels\\['priority'\\]`: give a text; not 1"),
        ({"note": "x" * 200}, "`labels` has `note`, which is too long: name and text"),
        ({str(n): "" for n in range(21)}, "`labels` has 21 labels: give at most 20"),
        (["acme"], "`labels`: give a dict of texts by name"),
    ],
)
def test_labels_are_short_texts(labels, told):
    """What could not be sorted by, or would swell every record, is refused at once."""
    with pytest.raises(ValueError, match=told):
        settle("f", "function", {"labels": labels})
