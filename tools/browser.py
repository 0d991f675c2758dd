"""A headless Chromium for the page's tests and its picture, driven through its own chromedriver.

Owns finding the browser and starting it: Debian's `chromium` and `chromium-driver`, or whatever stands in PATH under
these names. Knows nothing of the page.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The sandbox wants privileges that containers lack, and their /dev/shm is small.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--no-first-run",
)


def why_no_browser() -> str | None:
    """What is missing to drive a browser; None when nothing is."""
    if not any(map(shutil.which, BROWSERS)):
        return "no chromium in PATH"
    if not shutil.which("chromedriver"):
        return "no chromedriver in PATH"
    try:
        import selenium  # noqa: F401  # only whether it is there
    except ImportError:
        return "selenium is not installed"
    return None


@contextmanager
def chromium(width: int, height: int, scale: float = 1.0) -> Iterator[Chrome]:
    """A browser whose window shows width x height CSS pixels; `scale`: device pixels a CSS pixel. Closed at the end."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = next(path for path in map(shutil.which, BROWSERS) if path)
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
    try:
        resize(driver, width, height, scale)
        yield driver
    finally:
        driver.quit()


def resize(driver: Chrome, width: int, height: int, scale: float = 1.0) -> None:
    """Give the page a viewport of that size, whatever the window's frame takes."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer_dark(driver: Chrome, is_dark: bool) -> None:
    """What the page hears when it asks whether the user likes it dark."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
