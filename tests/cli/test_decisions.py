"""Reading decisions: changes on the command line, typed lines, what an editor saved."""

import re
import sys

import pytest

from graph_retry import accept, approve, comment, edit, reject, respond
from graph_retry.desk.cli.answering.decide import (
    Draft,
    UnreadableError,
    completed,
    edited,
    from_line,
    from_words,
    ways,
)
from graph_retry.desk.cli.exits import Stop
from tests.review.questions import question

SHOWN = {"n": 1, "zip": "07", "none": None, "a.b": 1, "opt": {"deep": {"x": "1"}}}


@pytest.mark.parametrize(
    ("change", "meant"),
    [
        ("n=2", {"n": 2}),
        ("n=2.5", {"n": 2.5}),
        ("n=two", {"n": "two"}),
        ("n=", {"n": ""}),
        ("n=NaN", {"n": "NaN"}),
        ("zip=08", {"zip": "08"}),
        ("zip=8", {"zip": "8"}),
        ('zip="8"', {"zip": '"8"'}),
        ("zip=null", {"zip": None}),
        ("none=5", {"none": 5}),
        ("none=x=y", {"none": "x=y"}),
        ("new=[1, 2]", {"new": [1, 2]}),
        ("a.b=2", {"a.b": 2}),
        ('opt={"top": 3}', {"opt": {"top": 3}}),
        ("/opt/deep/x=2", {"opt": {"deep": {"x": "2"}}}),
        ("/n=2", {"n": 2}),
    ],
)
def test_a_change_is_read(change, meant):
    """JSON where it is JSON, text as typed where text is shown; a dot is part of a name."""
    assert edited(SHOWN, [change]) == meant


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("n", "'n' is not a change: write field=value. Leave no spaces around `=`."),
        ("=1", "is not a change"),
        ("", "is not a change"),
        ("zipp", "Did you mean `zip`?"),
        ("/opt/shallow=1", "there is no value at /opt/shallow"),
        ("/rows/-=1", "there is no value at /rows/-"),
    ],
)
def test_a_change_that_cannot_be_read_is_refused(change, told):
    """Nothing is guessed."""
    with pytest.raises(UnreadableError, match=re.escape(told)):
        edited({**SHOWN, "rows": [1]}, [change])


def test_changes_inside_the_same_field_are_sent_together():
    """The list is sent as a whole, because a list replaces the shown one."""
    rows = {"rows": [{"n": "1", "zip": "07"}, {"n": 2}]}
    both = edited(rows, ["/rows/0/n=3", "/rows/1/n=4"], texts_stay=False)
    assert both == {"rows": [{"n": 3, "zip": "07"}, {"n": 4}]}
    assert rows["rows"][0]["n"] == "1"


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("approve", approve()),
        ("  edit n=2 zip='two words' ", edit(n=2, zip="two words")),
        ('edit opt={"top": 3}', edit(opt={"top": 3})),
        ('edit zip={"a": 1}', edit(zip='{"a": 1}')),
        ('edit {"n": 2, "zip": "a=b"}', edit(n=2, zip="a=b")),
        ("""edit '{"opt": {"deep": null}}'""", edit(opt={"deep": None})),
        ("reject too dear", reject("too dear")),
        ("reject", reject()),
        ("comment be brief", comment("be brief")),
        ("accept it is so", accept("it is so")),
        ("accept", accept()),
        ('respond {"a": 1}', respond('{"a": 1}')),
        ("respond [1, 2]", respond("[1, 2]")),
        ("respond {file}", respond("from a file")),
        ("respond 7", respond(7)),
        ("respond -1.5", respond(-1.5)),
        ("respond true", respond(output=True)),
        ("respond null", respond(None)),
    ],
)
def test_a_typed_line_is_read(tmp_path, line, decision):
    """One word says what to do, the rest of the line with what."""
    file = tmp_path / "output.txt"
    file.write_text("from a file\n")
    assert from_line(line.replace("{file}", str(file)), SHOWN) == decision


OUTPUT = {"total": 1, "km": 3, "to": {"a": 1, "b": 2}, "rows": [{"x": 1, "y": 2}]}


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("respond -km", respond(drop=["/km"])),
        (
            "respond total=7 -km -/rows/0/y",
            respond(changes={"total": 7}, drop=["/km", "/rows/0/y"]),
        ),
        ("""respond -km to='{"b": 5}'""", respond(changes={"to": {"b": 5}}, drop=["/km"])),
    ],
)
def test_a_key_of_the_output_is_dropped(line, decision):
    """What is dropped and what is changed are sent; the run makes the output of them."""
    assert from_line(line, SHOWN, output=OUTPUT) == decision


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("respond -tatal", r"there is no value at tatal\. Did you mean `total`\? Fields"),
        ("respond -/rows/7", "there is no value at /rows/7"),
        ("maybe", "choose from approve, edit, reject, respond"),
        (
            "approve model=large",
            "number of an alternative, not 'model=large'. To change params: edit model=large",
        ),
        ("edit large", "An edit is written as: edit model=large"),
        ("edit [1]", "An edit is written as: edit model=large"),
        ("""edit '{"n": 2}' zip=1""", "An edit is written as: edit model=large"),
        ("edit {}", "An edit is written as: edit model=large"),
        ("edit n='b", "An edit is written as: edit model=large"),
        ("output x", "choose from approve"),
        ("aprove", "Did you mean `approve`?"),
        ("model=large n=2", "To change params: edit model=large n=2"),
        ("respond", "respond FILE"),
        ("respond /no/such/file", "cannot be read"),
        ("respond -totl", r"no value at totl\. Did you mean `total`\? Fields of the output are"),
        ("respond seven", "the name of a file, - for standard input, JSON, or FIELD=VALUE"),
        (
            "respond total=7 name='x",
            r"^No closing quotation\. Fields .* as: respond total=7 ",
        ),
        ("comment", "comment is written as: comment WORDS"),
        ("defer", "defer is written as: defer TIME"),
    ],
)
def test_a_typed_line_that_decides_nothing_is_explained(line, told):
    """The reason shows how it is written."""
    with pytest.raises(UnreadableError, match=told):
        from_line(line, SHOWN, output=OUTPUT)


@pytest.mark.parametrize(
    ("words", "decision"),
    [
        (["approve"], approve()),
        (["reject", "too", "dear"], reject("too dear")),
        (["comment", "be brief"], comment("be brief")),
        (["accept", "it is so"], accept("it is so")),
        (["accept", ""], accept()),
        (["edit", "n=2", "zip=two words"], edit(n=2, zip="two words")),
        (["edit", '{"n": 2, "zip": "it\'s"}'], edit(n=2, zip="it's")),
    ],
)
def test_words_of_the_command_decide(words, decision):
    """They are read like a line at the prompt, and the shell's quotes hold."""
    assert from_words(words, SHOWN) == decision


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--reject", "x"], "Write reject without the dashes"),
        (["--set", "n=2"], "no such option: --set"),
        (["approve", "n=2"], "not 'n=2'. To change params: edit n=2"),
        (["perhaps"], "choose from approve, edit"),
    ],
)
def test_words_that_decide_nothing_are_refused(words, told):
    """The message shows how it is written."""
    with pytest.raises(Stop, match=told):
        from_words(words, SHOWN)


OFFERED = ["approve", "edit", "reject", "respond", "comment", "accept"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("e n=2", "edit n=2"),
        ("c be brief", "comment be brief"),
        ("ap", "approve"),
        ("res {}", "respond {}"),
        ("no", "no"),
        ("x=2", "x=2"),
        ("?", "help"),
        ("help edit", "help"),
        ("SKIP it", "skip"),
        ("h", "help"),
        ("s", "skip"),
        ("", ""),
    ],
)
def test_the_beginning_of_a_word_is_enough(typed, meant):
    """It is completed if one word that can be typed here begins so; whole words stay."""
    assert completed(typed, OFFERED) == meant


def test_a_beginning_of_several_words_is_refused():
    """Nothing is guessed; and what is not offered does not count."""
    with pytest.raises(UnreadableError, match="'r' may be reject or respond"):
        completed("r too dear", OFFERED)
    assert completed("a", ["approve", "edit"]) == "approve"


def test_what_an_approval_does_is_told():
    """It calls again after a failure, with a suggestion if there is one, or takes the output."""
    asked = question({"n": 1})
    assert "call again with the params as they are" in ways(["approve"], asked)
    assert "suggested" not in ways(["approve"], asked)
    suggested = question({"n": 1}, suggested={"n": 2})
    assert "call again with the suggested changes" in ways(["approve"], suggested)
    assert "take this output" in ways(["approve"], question({"n": 1}, failure=None))


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Return a function that makes a Python snippet the editor; it edits `text`."""

    def make(change):
        script = tmp_path / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            "file = pathlib.Path(sys.argv[1])\n"
            "text = file.read_text()\n"
            f"{change}\n"
            "file.write_text(text)\n"
        )
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")

    return make


def test_an_editor_changes_the_params(editor):
    """Only what was changed is sent, whatever else was written anew."""
    editor("import json; text = json.dumps({**json.loads(text), 'n': 7, 'new': [1]})")
    assert from_line("edit", SHOWN) == edit(n=7, new=[1])
    editor("text = text.replace('\"n\": 1,', '\"n\": true,')")
    assert from_line("edit", SHOWN) == edit(n=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("pass", "nothing was changed"),
        ("text = text[:-3]", "not JSON"),
        ("text = '[]'", "not a JSON object"),
        ("text = text.replace('\"x\": \"1\"', '')", "`/opt/deep/x` is missing"),
        ("sys.exit(1)", "the editor .* failed"),
    ],
)
def test_an_edit_that_cannot_be_taken_is_explained(editor, change, told):
    """A removed field is not silently kept, an empty edit not taken for an approval."""
    editor(change)
    with pytest.raises(UnreadableError, match=told):
        from_line("edit", SHOWN)


def test_what_was_saved_is_edited_on(editor):
    """A comma too many, or an edit that is refused later, is mended and not typed again."""
    draft = Draft()
    editor("text = text.replace('1', '7', 1).rstrip()[:-1]")
    with pytest.raises(UnreadableError, match=r"not JSON .*\. Type edit to correct it"):
        from_line("edit", SHOWN, draft)
    editor("text += '}'")
    assert from_line("edit", SHOWN, draft) == edit(n=7)
    editor("text = text.replace('\"n\": 7', '\"n\": 8')")
    assert from_line("edit", SHOWN, draft) == edit(n=8)


TEXTS = {"prompt": "One.\nTwo.\n", "n": 1, "messages": [{"content": "Read\nit"}]}


@pytest.mark.parametrize(
    ("line", "before", "meant"),
    [
        ("edit prompt", "One.\nTwo.\n", {"prompt": "ONE.\nTWO.\n"}),
        ("edit /messages/0/content", "Read\nit", {"messages": [{"content": "READ\nIT"}]}),
    ],
)
def test_a_text_is_opened_as_text(editor, line, before, meant):
    """Its lines are lines, and the line break that an editor adds at the end is not kept."""
    editor(f"assert text == {before!r} + chr(10), text; text = text.upper()")
    assert from_line(line, TEXTS) == edit(meant)


def test_the_only_param_is_opened_as_text(editor):
    """Where a text is all that can be edited, `edit` needs no name."""
    editor("text = text.replace('Hi', 'Hello')")
    assert from_line("edit", {"value": "Hi\nyou"}) == edit(value="Hello\nyou")


@pytest.mark.parametrize("name", ["n", "gone", "/messages/7/content", "/messages/x", "/~9"])
def test_only_a_text_is_opened_as_text(name):
    """Of anything else, the change has to be written."""
    with pytest.raises(UnreadableError, match=r"An edit is written as|write field=value"):
        from_line(f"edit {name}", TEXTS)


def test_an_editor_that_is_not_there_is_explained(monkeypatch):
    """The way out is named."""
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(UnreadableError, match="set EDITOR"):
        from_line("edit", SHOWN)
