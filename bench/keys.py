"""How many keys answer many mixed reviews in Chromium: `python -m bench.keys [100]`.

The jobs of `examples/reviews` are started again and again. Each review is read, and answered as a
person would answer it, with keys alone. Ctrl-Enter counts as one key.
"""

import sys
from collections import Counter

from langgraph.checkpoint.memory import InMemorySaver
from selenium import webdriver
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from examples.reviews.office import JOBS, graph
from graph_retry.desk.web import create_app
from graph_retry.threads import list_reviews
from tests.web.conftest import chromium, serving

NUMBER = 100
WITHIN_S = 60

ANSWERS = {
    "read": ("a", ""),
    "sort ticket": ("r", "da"),
    "translate": ("a", ""),
    "summarise": ("x", ""),
}
"""By call: the key of the answer, and what is typed into its first field.

An invoice is read again as suggested, a ticket is said to be about a damage, a translation is
taken, and a summary without quota is given up.
"""


class Person:
    """Presses keys, and counts them: those that choose and send, and those that are typed."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self._browser = browser
        self.pressed: Counter[str] = Counter()

    def press(self, *keys: str, kind: str = "chosen and sent") -> None:
        """Press some keys."""
        ActionChains(self._browser).send_keys(*keys).perform()
        self.pressed[kind] += sum(1 if key in vars(Keys).values() else len(key) for key in keys)

    def send(self) -> None:
        """Press Ctrl-Enter."""
        chain = ActionChains(self._browser).key_down(Keys.CONTROL)
        chain.send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
        self.pressed["chosen and sent"] += 1

    def sees(self, query: str) -> str:
        """Wait for an element, and return its text."""
        found = WebDriverWait(self._browser, WITHIN_S).until(
            lambda browser: browser.find_elements(By.CSS_SELECTOR, query)
        )
        return str(found[0].text)


def main(number: int) -> None:
    """Let reviews wait, answer them, and print how many keys that took."""
    office, count = graph.compile(checkpointer=InMemorySaver()), 0
    while (waiting := len(list_reviews(office))) < number:
        for name, job in JOBS.items():
            office.invoke(job, {"configurable": {"thread_id": f"{name}-{count}"}})
        count += 1
    app = create_app(office, authorize=lambda _: "ada")
    with serving(app) as page, chromium() as browser:
        person, answered = Person(browser), 0
        browser.get(f"{page}/")
        person.sees(".row")
        person.press("j", Keys.ENTER)
        while True:
            key, text = ANSWERS[person.sees("article .facts b")]
            person.press(key)
            if text:
                person.press(text, kind="typed")
            person.send()
            answered += 1
            person.sees(".outcome .next")
            if not browser.find_elements(By.CSS_SELECTOR, "#next"):
                break
            person.press(Keys.ENTER)
    left = len(list_reviews(office))
    print(f"{answered} answers to {waiting} reviews, {left} left: {dict(person.pressed)} keys")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else NUMBER)
