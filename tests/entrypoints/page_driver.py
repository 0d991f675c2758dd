"""A person at the page: a browser, and what one can see and do there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

PATIENCE = 60.0
WEATHER = "What is the weather in Paris?"


class Page:
    """The page in a browser. `open` goes to a server's."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)
        self.driver.execute_script("sessionStorage.clear()")
        self.driver.get(url)
        self.wait(lambda: self.state != "")

    @property
    def state(self) -> str:
        return self.by_id("state").text

    def by_id(self, name: str) -> WebElement:
        return self.driver.find_element(By.ID, name)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The shown texts of all such elements, at one moment."""
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText)"
        texts: list[str] = self.driver.execute_script(script, selector)
        return texts

    def wait(self, condition: Callable[[], Any], timeout: float = PATIENCE) -> Any:
        """Until the condition holds; what it gave then."""
        deadline = time.monotonic() + timeout
        while not (value := condition()):
            assert time.monotonic() < deadline, self.by_id("transcript").text
            time.sleep(0.03)
        return value

    def ask(self, text: str) -> None:
        """Type a question and send it; does not wait for the answer."""
        self.by_id("question").send_keys(text + Keys.ENTER)

    def wait_for_answer(self) -> None:
        self.wait(lambda: not self.by_id("stop").is_displayed() and not self.all('.turn[aria-busy="true"]'))

    def answer(self, text: str) -> str:
        """Ask, wait, and give the text of the answer."""
        self.ask(text)
        self.wait_for_answer()
        return self.texts(".answer")[-1]

    def example(self, question: str) -> None:
        """Press one of the examples."""
        self.wait(lambda: self.all("#examples button"))
        next(button for button in self.all("#examples button") if button.text.startswith(question)).click()

    def watch(self, selector: str) -> None:
        """From now on remember every text that the element shows; see `seen`."""
        self.driver.execute_script(
            """window.seen = [];
            new MutationObserver(() => {
              const text = document.querySelector(arguments[0])?.textContent;
              if (text && window.seen.at(-1) !== text) window.seen.push(text);
            }).observe(document.body, {childList: true, subtree: true, characterData: true});""",
            selector,
        )

    @property
    def seen(self) -> list[str]:
        seen: list[str] = self.driver.execute_script("return window.seen")
        return seen

    def complaints(self) -> list[str]:
        """What the browser's console holds of errors since the last time; refused requests are no such thing."""
        entries = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [entry for entry in entries if "Failed to load resource" not in entry]

    def overflows(self) -> bool:
        """Whether the page is wider than its window."""
        wide: bool = self.driver.execute_script("return document.documentElement.scrollWidth > innerWidth")
        return wide

    def style(self, selector: str, name: str) -> str:
        """A computed style."""
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        return str(self.driver.execute_script(script, selector, name))
