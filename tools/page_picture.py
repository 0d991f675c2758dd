"""The picture of the page in the README: a headless Chromium at a running server, as PNG.

`python -m tools.page_picture [URL] [--dark] [--out FILE]` asks a server that serves atom-tiny for a sum and for the
weather, answers the call, and takes the picture. Owns what is asked and how large the picture is; everything in it is
the page's own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.browser import chromium, prefer_dark, why_no_browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TARGET = Path(__file__).resolve().parents[1] / "docs/images/page.png"
SIZE, SCALE = (1280, 900), 1.5
SUM, WEATHER, RESULT = "What is 17 + 25?", "What is the weather in Paris?", '{"temperature": 18, "sky": "clear"}'
PATIENCE = 60.0


def converse(driver: Chrome) -> None:
    """A sum with a thought, then a tool call and an answer out of its result."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    def count(selector: str) -> int:
        return len(driver.find_elements(By.CSS_SELECTOR, selector))

    def wait_for_answers(number: int) -> None:
        wait(lambda: count('.assistant[aria-busy="false"]') == number)

    wait(lambda: count("#examples button"))
    example = next(item for item in driver.find_elements(By.CSS_SELECTOR, "#examples button") if SUM in item.text)
    example.click()
    wait_for_answers(1)
    driver.find_element(By.ID, "tools-example").click()
    driver.find_element(By.ID, "question").send_keys(WEATHER + Keys.ENTER)
    wait_for_answers(2)
    driver.find_element(By.CSS_SELECTOR, ".result textarea").send_keys(RESULT + Keys.ENTER)
    wait_for_answers(3)
    wait(lambda: driver.find_element(By.ID, "gauge-tpot").text != "–")


def wait(condition: Callable[[], Any]) -> None:
    """Until the condition holds. Ends the program when that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("the page does not show what the picture needs; does the server serve atom-tiny?")
        time.sleep(0.05)


def main() -> None:
    """Ask, answer, take the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000")
    parser.add_argument("--dark", action="store_true", help="as it looks to those who like it dark")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    problem = why_no_browser()
    if problem is not None:
        sys.exit(problem)
    with chromium(*SIZE, SCALE) as driver:
        prefer_dark(driver, options.dark)
        driver.get(options.url)
        converse(driver)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(options.out))
    print(f"wrote {options.out}, {options.out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
