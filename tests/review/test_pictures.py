"""Pictures in params: people see a short note, and the call gets the picture."""

import base64
import json
import re

import pytest

from graph_retry._core.params.patch import readable_diff
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.review_record import Refused
from tests.review.questions import TITLE, judge, question

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 12).decode()
NOTE = "[image/gif, 9,999 characters, 0123abcd]"
URL = f"data:image/png;base64,{PNG}"
MESSAGES = {
    "OpenAI": [{"type": "image_url", "image_url": {"url": URL}}],
    "LangChain": [{"type": "image", "base64": PNG, "mime_type": "image/png"}],
    "Anthropic": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    ],
    "in Markdown": f"Look: ![a picture]({URL})",
}


def asked_with(content):
    """Ask about a message with a picture in it."""
    messages = [{"role": "user", "content": content}]
    return question({"messages": messages, "model": "small"}, raw_output=f"I saw {URL}")


def edited(args):
    """Send a form as Agent Chat UI does."""
    return {"decisions": [{"type": "edit", "edited_action": {"name": TITLE, "args": args}}]}


@pytest.mark.parametrize("content", MESSAGES.values(), ids=MESSAGES)
def test_a_form_shows_a_note_for_a_picture_and_gives_the_picture_back(content):
    """Text beside a picture can be edited, as objects or as the JSON text of a box."""
    asked = asked_with(content)
    payload = build_payload(asked)
    args = payload["action_request"]["args"]
    assert "[image/png, 4,1" in json.dumps(args)
    for shown in (args, payload["description"]):
        assert PNG[100:140] not in json.dumps(shown)
    assert PNG in json.dumps(payload["params"])
    turn = {"role": "user", "content": "What is in it?"}
    more = [*args["messages"], turn]
    for messages in (more, json.dumps(more)):
        verdict = judge(edited({**args, "messages": messages}), asked)
        assert verdict.params["messages"] == [*asked.params["messages"], turn]


def test_a_note_that_somebody_changed_is_refused():
    """A picture that is not known is no picture, and no text either."""
    asked = asked_with(MESSAGES["OpenAI"])
    args = build_payload(asked)["action_request"]["args"]
    changed = json.dumps(args["messages"]).replace("[image/png, 4,1", "[image/png, 9,9")
    verdict = judge(edited({**args, "messages": changed}), asked)
    assert isinstance(verdict, Refused)
    assert "is not shown in this field" in verdict.problem


def test_a_note_is_refused_in_a_field_without_a_picture():
    """It was copied from another field, and would reach the model as text."""
    asked = question({"messages": MESSAGES["OpenAI"], "prompt": "Look.", "seen": NOTE})
    args = build_payload(asked)["action_request"]["args"]
    (note,) = re.findall(r"\[image/png, [^]]+\]", json.dumps(args["messages"]))
    verdict = judge(edited({**args, "prompt": f"Look at {note}"}), asked)
    assert isinstance(verdict, Refused)
    assert "`prompt`: " in verdict.problem
    verdict = judge(edited({**args, "seen": f"{NOTE}, twice"}), asked)
    assert verdict.params["seen"] == f"{NOTE}, twice"


def test_a_diff_names_pictures_and_shows_whole_sentences():
    """Both sentences around a change are readable, however long the prompt is."""
    text = "Read the invoice. " * 30
    old = {"prompt": f"{text}Take the total, which is in the last line of the table.", "image": URL}
    new = {"prompt": f"{text}Take the total without tax. It is in the last line.", "image": ""}
    by_path = {change["path"]: change for change in readable_diff(old, new)}
    assert by_path["/prompt"] == {
        "path": "/prompt",
        "before": "…Take the total, which is in the last line of the table.",
        "after": "…Take the total without tax. It is in the last line.",
    }
    assert by_path["/image"]["before"].startswith("[image/png, 4,1")
    described = build_payload(question(diff=readable_diff(old, new)))["description"]
    assert '"…Take the total without tax. It is in the last line."' in described


def test_a_suggested_sentence_is_in_the_description_as_a_whole():
    """A sentence of 600 characters is not cut where there is room for it."""
    sentence = "Name " + "the vendor and " * 40 + "the total."
    change = readable_diff({"prompt": "Read."}, {"prompt": f"Read. {sentence}"})
    assert sentence in build_payload(question(diff=change))["description"]
