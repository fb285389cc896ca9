"""List, evidence and answer side by side: wrong fields first, long texts and lists around them."""

import json
import re
from datetime import date

from pydantic import BaseModel
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from graph_retry import resume
from graph_retry.desk.web import create_app
from graph_retry.threads import assign, defer, list_reviews
from tests.web.conftest import serving
from tests.web.forms import Form
from tests.web.test_answers import last_decision, opened, sent
from tests.web.test_browser import WITHIN_S, main_text, one, press, send, wait_for
from tests.web.test_everybody import checked


class Line(BaseModel):
    """A line of an order."""

    name: str
    price: float


class Order(BaseModel):
    """What the model must give here."""

    lines: list[Line]


def ordering(desk, count, wrong):
    """Let a review wait whose output has some lines, of which those in `wrong` are not valid."""
    lines = [{"name": f"Poster {number}", "price": 1.5 + number} for number in range(count)]
    for number, text in wrong.items():
        lines[number]["price"] = text
    desk.says = lambda _: json.dumps({"lines": lines}, indent=1)
    desk.options["output"] = Order
    desk.wait("t1", {"prompt": "Read: 5 posters, each 8,50 EUR."})
    return lines


def sized(browser, width):
    """Give the browser's window a width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_two_wrong_values_of_eight_lines_take_twelve_keys(browser, desk):
    """`r`, the first value, `F8`, the second value, `Ctrl-Enter`: the rest is kept."""
    lines = ordering(desk, 8, {4: "8,50 EUR", 6: "seven"})
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        browser.get(f"{page}/")
        one(browser, ".row").click()
        wait_for(browser, "2 things are wrong")
        keys = ["r", *"8.5", Keys.F8, *"7.5"]
        press(browser, *keys)
        assert "14 values are kept" in main_text(browser)
        send(browser)
        wait_for(browser, "Your output is used.")
    assert len(keys) + 2 <= 12
    lines[4]["price"], lines[6]["price"] = 8.5, 7.5
    assert [line.model_dump() for line in desk.results[0].lines] == lines


def test_what_a_person_changed_stays_in_sight(desk):
    """A form that is refused shows it beside what is still wrong, and counts no value as kept."""
    lines = ordering(desk, 8, {4: "8,50 EUR", 6: "seven"})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("respond")
        form.fill("number:/lines/4/price", "-.5")
        refused = sent(client, form)
        assert refused.status_code == 422
        assert "14 values are kept" in re.sub(r"\s+", " ", refused.text)
        shown = re.findall(
            r'is-marked[^"]*">\s+<div class="field-head">.*?for="\w+\.output\.(.*?)"',
            refused.text,
            re.DOTALL,
        )
        assert shown == ["/lines/4/price", "/lines/6/price"]
        form = Form(refused.text)
        form.fill("number:/lines/6/price", "7.5")
        assert "Your output is used." in sent(client, form).text
    lines[4]["price"], lines[6]["price"] = -0.5, 7.5
    assert [line.model_dump() for line in desk.results[0].lines] == lines


def test_tab_chooses_a_wrong_text_and_links_name_the_case(browser, desk):
    """What is typed replaces a date too; a way chosen by mouse on a phone comes into sight."""

    class Invoice(BaseModel):
        day: date
        due: date

    desk.says = lambda _: '{"day": "3 March", "due": "4 March"}'
    desk.options["output"] = Invoice
    desk.wait("t1", {"prompt": "Read A."}, {"prompt": "Read B."})
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        sized(browser, 390)
        browser.get(f"{page}/")
        one(browser, ".row").click()
        wait_for(browser, "The others: Read ")
        label = one(browser, "[data-way=r] + label")
        browser.execute_script("arguments[0].scrollIntoView({block: 'end'})", label)
        label.click()
        field = one(browser, "[name$='output.text:/day']")
        button = one(browser, "[data-way=r] ~ .panel .send")
        tops = "return arguments[0].getBoundingClientRect().top"
        assert browser.execute_script(tops, field) < browser.execute_script(tops, button) < 900
        browser.execute_script("document.activeElement.blur()")
        press(browser, "r", "2027-03-03", Keys.TAB, "2027-03-04")
        send(browser)
        wait_for(browser, "Your output is used.")
        assert "Continue with this thread: Read " in main_text(browser)
        sized(browser, 1100)
    assert desk.results == [Invoice(day=date(2027, 3, 3), due=date(2027, 3, 4))]


def test_a_mapping_is_written_and_changed_as_json(desk):
    """Its names are free, so that no fields can offer them; it may be empty at first."""
    desk.options["output"] = dict[str, int]
    for says in ('{"a": ', '{"a": "many", "b": 2}'):
        desk.says = lambda _, says=says: says
        desk.wait(says, {"prompt": says})
        with desk.client() as client:
            form = Form(opened(client)[1])
            form.choose("respond")
            if says.endswith("}"):
                form.press("output json:")
                form = Form(sent(client, form).text)
            form.untick("output.none:")
            form.fill("output.json:", '{"c": 3}')
            assert "Your output is used." in sent(client, form).text
    assert desk.results == [{"c": 3}, {"c": 3}]


def test_the_panes_stand_side_by_side_where_there_is_room(browser, desk):
    """From 1180 pixels on; below that, one after the other. Nothing is too wide, axe is content."""
    ordering(desk, 3, {1: "8,50 EUR"})
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        browser.get(f"{page}/")
        address = one(browser, ".row").get_attribute("href")
        for width, is_wide in ((1440, True), (1180, True), (820, False), (390, False)):
            sized(browser, width)
            browser.get(address)
            if is_wide:
                WebDriverWait(browser, WITHIN_S).until(
                    lambda _: browser.find_elements(By.CSS_SELECTOR, ".side .row[aria-current]")
                )
            press(browser, "r")
            tops = [one(browser, f".{name}").rect["y"] for name in ("evidence", "answer")]
            assert (abs(tops[0] - tops[1]) < 20) == is_wide, width
            assert one(browser, ".side").is_displayed() == is_wide
            checked(browser)
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_f8_leads_from_mistake_to_mistake(browser, desk):
    """Without a form, through the marks in the text; equal texts light up together."""
    ordering(desk, 40, {4: "8,50 EUR", 30: "seven"})
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        browser.get(f"{page}/")
        one(browser, ".row").click()
        wait_for(browser, "2 things are wrong")
        told = "const active = document.activeElement; return active.dataset.place || ''"
        places = []
        for _ in range(3):
            press(browser, Keys.F8)
            places.append(browser.execute_script(told))
        assert places == ["/lines/4/price", "/lines/30/price", "/lines/4/price"]
        lit = browser.execute_script("return CSS.highlights.get('same').size")
        assert lit >= 3  # the mark, the received value beside the issue, and the prompt


def test_one_wrong_item_of_a_long_list_is_edited_alone(desk):
    """The page stays small, the other 1,999 items are kept, and all can be edited as JSON."""
    lines = ordering(desk, 2_000, {1_777: "on request"})
    with desk.client() as client:
        address, page = opened(client)
        assert len(page) < 100_000
        assert client.get(f"{address}/text").text.count("Poster") == 2_000
        form = Form(page)
        form.choose("respond")
        prices = [text for name, text in form.controls if name.endswith("/price")]
        assert prices == ["on request"]
        form.fill("/lines/1777/price", "much")
        form = Form(sent(client, form).text)
        form.fill("/lines/1777/price", "9.5")
        assert "Your output is used." in sent(client, form).text
    lines[1_777]["price"] = 9.5
    assert [line.model_dump() for line in desk.results[0].lines] == lines
    assert last_decision(desk)["type"] == "respond"


def test_a_long_list_can_be_edited_as_json(desk):
    """A press shows all of it, with what was typed; items can then come and go."""
    ordering(desk, 100, {50: "on request"})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("respond")
        form.fill("/lines/50/price", "2.5")
        form.press("output json:/lines")
        form = Form(sent(client, form).text)
        (text,) = [text for name, text in form.controls if name.endswith("json:/lines")]
        lines = json.loads(text)
        assert (len(lines), lines[50]["price"]) == (100, 2.5)
        form.fill("json:/lines", json.dumps(lines[40:60]))
        assert "Your output is used." in sent(client, form).text
    assert len(desk.results[0].lines) == 20


def test_a_long_list_of_the_call_is_kept(desk):
    """An edit of another field leaves each of its items as it is."""
    desk.wait("t1", {"messages": [{"role": "user", "content": f"n{n}"} for n in range(200)]})
    with desk.client() as client:
        page = opened(client)[1]
        form = Form(page)
        form.choose("edit")
        form.fill("number:/temperature", "0.5")
        sent(client, form)
    assert [each["content"] for each in desk.calls[1].messages] == [f"n{n}" for n in range(200)]
    assert desk.calls[1].temperature == 0.5
    assert "200 items are kept" in page


def test_the_list_names_each_case(desk):
    """By the place whose texts differ most; a search finds texts of the params."""
    for name in ("Ada", "Bo", "Cem"):
        extra = {"from": name[:1] if name == "Ada" else "?", "to": name}
        desk.wait(f"t-{name}", {"prompt": "Write a letter.", "extra": extra})
    desk.wait(
        "chat", {"prompt": "Write a letter.", "messages": [{"role": "user", "content": "Hi"}]}
    )
    with desk.client() as client:
        page = client.get("/").text
        for name in ("Ada", "Bo", "Cem"):
            assert f'dir="auto">{name}</b>' in page
        found = client.get("/?text=cem").text
    assert found.count("row-head") == 1
    assert len(list_reviews(desk.graph)) == 4


def test_a_case_keeps_its_name(desk):
    """What is changed in its params, or added to them, for another attempt names no other case."""
    desk.wait("t1", {"prompt": "Letter to Ada"})
    desk.wait("t2", {"prompt": "Letter to Bo"})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("text:/prompt", "Answer with a number.")
        done = sent(client, form).text
        assert 'id="next"' in done
        assert "Letter to Bo, attempt 2</a>" in done
        page = client.get("/").text
    assert 'dir="auto">Letter to Bo</b>' in page
    prompts = {review.params["prompt"] for review in list_reviews(desk.graph)}
    assert prompts == {"Letter to Ada", "Answer with a number."}


def test_a_call_says_what_it_is_about(desk):
    """The option `subject` names the case in the list and on its page, and is found."""
    for name in ("one", "two"):
        desk.options["subject"] = lambda params: f"Order {params.extra['of']}, in English"
        desk.wait(name, {"prompt": "Read it.", "extra": {"of": name}})
    with desk.client() as client:
        page = client.get("/").text
        assert 'dir="auto">Order one, in English</b>' in page
        assert "Order one, in English" in client.get(opened(client, 1)[0]).text


def test_tabs_show_what_waits_what_is_mine_and_what_comes_later(desk):
    """*Mine* has what was given to this person, *Later* what was deferred."""
    desk.options["allowed_decisions"] = ["approve", "assign", "defer"]
    for name in ("plain", "given", "deferred"):
        desk.wait(name)
    at = {name: {"configurable": {"thread_id": name}} for name in ("given", "deferred")}
    resume(desk.graph, at["given"], assign("ada"))
    resume(desk.graph, at["deferred"], defer(until="2099-01-01T00:00:00+00:00"))
    with desk.client() as client:

        def threads(tab):
            page = client.get("/", params={"tab": tab}).text
            return set(re.findall(r'<span class="quiet">([\w-]+)</span></span>', page))

        assert threads("waiting") == {"plain", "given"}
        assert threads("mine") == {"given"}
        assert threads("later") == {"deferred"}
        assert threads("sideways") == {"plain", "given"}
        assert "Preview on all 2" in opened(client)[1]  # Without the deferred one.
