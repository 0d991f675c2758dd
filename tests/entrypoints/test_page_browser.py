"""The page at / in a headless Chromium: what a person sees and does, against real and scripted servers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import LiveServer, running, scripted
from tools.browser import chromium, prefer_dark, resize, why_no_browser

pytestmark = pytest.mark.skipif(why_no_browser() is not None, reason=f"no browser: {why_no_browser()}")

if why_no_browser() is None:
    from selenium.webdriver.common.keys import Keys

    from tests.entrypoints.page_driver import WEATHER, Page

WIDE, NARROW = (1280, 860), (360, 740)
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script><b>bold</b> & **stars**'
SLOW = Script(text="word " * 600, chunk=5, delay=0.1)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium(*WIDE) as driver:
        yield Page(driver)


@pytest.fixture(autouse=True)
def _as_it_was(page: Page) -> Iterator[None]:
    yield
    resize(page.driver, *WIDE)
    prefer_dark(page.driver, False)
    complaints = page.complaints()
    page.driver.get("about:blank")
    assert complaints == []


@pytest.fixture(scope="module")
def atom_tiny() -> Iterator[str]:
    """The address of a real server with the model that ships."""
    command = [sys.executable, "-m", "atom.entrypoints.openai_server", "--model", "atom-tiny"]
    command += ["--host", "127.0.0.1", "--server-port", "0", "--kv-cache-memory", "32M"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    try:
        addresses = (re.search(r"serving .* at (http://\S+)", line) for line in process.stderr)
        url = next(address[1] for address in addresses if address)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield url
    finally:
        process.terminate()
        process.wait(120)


def test_a_thought_a_call_and_its_result_of_the_real_model(page: Page, atom_tiny: str) -> None:
    page.open(atom_tiny)
    page.watch(".thought .text")
    page.example(WEATHER)
    page.wait_for_answer()
    assert page.seen and all(page.seen[-1].startswith(text) for text in page.seen)  # it streamed
    assert page.texts(".call .name") == ["get_weather"]
    assert json.loads(page.texts(".call pre")[0]) == {"city": "Paris"}
    field = page.all(".result textarea")[0]
    assert field == page.driver.switch_to.active_element and not page.all(".results button")[0].is_enabled()
    field.send_keys('{"temperature": 18, "sky": "clear"}' + Keys.ENTER)
    page.wait(lambda: page.texts(".answer"))
    page.wait_for_answer()
    assert "18" in page.texts(".answer")[-1] and not page.all(".results")
    assert page.texts(".call .result .text") == ['{"temperature": 18, "sky": "clear"}']


def test_what_is_served_and_how_busy_it_is(page: Page, atom_tiny: str) -> None:
    page.open(atom_tiny)
    assert page.state == "ready" and page.by_id("model-name").text == "atom-tiny"
    facts = dict(zip(page.texts("#facts dt"), page.texts("#facts dd"), strict=True))
    wanted = {"Model": "atom-tiny", "Tool calls": "qwen", "Reasoning": "think", "Thinking switch": "enable_thinking"}
    assert wanted.items() <= facts.items() and facts["Context"] == "4,096 tokens" and facts["Kernels"] == "reference"
    page.watch("#gauge-generation")
    page.example("What is 17 + 25?")
    page.wait_for_answer()
    assert "42" in page.texts(".answer")[-1] and page.texts(".thought .text") != [""]
    page.wait(lambda: any(re.search("[1-9]", text) for text in page.seen))
    assert page.by_id("gauge-ttft").text.endswith("ms") and page.by_id("gauge-tpot").text.endswith("ms")
    loaded = page.driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert loaded and all(name.startswith(atom_tiny) for name in loaded)


def wait_until_idle(page: Page, live: LiveServer) -> None:
    page.wait(lambda: len(live.serving.work) == 0)


@pytest.mark.parametrize("way", ["button", "escape", "new chat"])
def test_an_answer_can_be_stopped(page: Page, way: str) -> None:
    with running(scripted(SLOW, "Second.")) as live:
        page.open(live.url)
        page.ask("Go on.")
        page.wait(lambda: "word word" in "".join(page.texts(".answer")))
        assert len(live.serving.work) == 1
        if way == "escape":
            page.by_id("question").send_keys(Keys.ESCAPE)
        else:
            page.by_id("stop" if way == "button" else "clear").click()
        wait_until_idle(page, live)
        page.wait_for_answer()
        if way == "new chat":
            assert page.by_id("welcome").is_displayed() and not page.all(".turn")
        else:
            assert page.texts(".answer")[-1].startswith("word word") and "stopped" in page.texts(".figures")[-1]
        assert page.answer("And now?") == "Second."


def test_requests_hold_the_conversation_and_the_options(page: Page) -> None:
    with running(scripted("First.", "Second.")) as live:
        page.open(live.url)
        page.driver.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        page.by_id("system").send_keys("Be brief.")
        page.by_id("temperature").send_keys("0.5")
        page.by_id("question").send_keys("one" + Keys.SHIFT + Keys.ENTER + Keys.NULL + "two")
        page.by_id("send").click()
        page.wait_for_answer()
        page.answer("three")
        page.all(".copy")[-1].click()
        command = page.wait(lambda: page.driver.execute_script("return window.copied"))
    assert command.startswith(f"curl -N '{live.url}/v1/chat/completions'") and "Authorization" not in command
    request = json.loads(command[command.index("-d '") + 4 : -1])
    said = [(message["role"], message["content"]) for message in request["messages"]]
    assert said[:2] == [("system", "Be brief."), ("user", "one\ntwo")]
    assert said[2:] == [("assistant", "First."), ("user", "three")]
    assert (request["temperature"], request["max_tokens"], request["stream"]) == (0.5, 512, True)


def test_tools_that_are_no_tools_are_not_sent(page: Page) -> None:
    with running(scripted("Fine.")) as live:
        page.open(live.url)
        page.by_id("tools").send_keys('[{"type"')
        assert "no JSON" in page.by_id("tools-problem").text
        page.ask("hi")
        assert "no JSON" in page.by_id("question-problem").text and page.by_id("question").get_property("value") == "hi"
        page.by_id("tools-example").click()
        assert page.by_id("tools-problem").text == "" and page.by_id("tools-count").text == "1"
        page.by_id("tools-clear").click()
        assert page.answer("") == "Fine." and page.by_id("question-problem").text == ""


def conversation(page: Page) -> list[dict[str, Any]]:
    """The messages of the last request, as its command for a shell has them."""
    page.driver.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.all(".copy")[-1].click()
    command = page.wait(lambda: page.driver.execute_script("return window.copied"))
    messages: list[dict[str, Any]] = json.loads(command[command.index("-d '") + 4 : -1])["messages"]
    return messages


def test_each_call_gets_its_own_result_and_a_stopped_one_gets_one_too(page: Page) -> None:
    """Calls that the limit cut off ask for nothing; a template wants a result for every other."""
    call = "<|tool_call_begin|>functions.get_weather:%d<|tool_call_argument_begin|>%s<|tool_call_end|>"
    section = "<|tool_calls_section_begin|>%s<|tool_calls_section_end|>"
    two = Script(text=section % (call % (0, "city: Bern") + call % (1, '{"city": "Oslo"}')))
    endless = call % (1, '{"city": "%s"}' % ("x" * 30_000))
    stopped = Script(text=section % (call % (0, '{"city": "Rome"}') + endless), chunk=40, delay=0.15)
    with running(scripted(two, "Fine.", stopped, "Well.", tool_call_parser="kimi")) as live:
        page.open(live.url)
        page.by_id("tools-example").click()
        page.by_id("temperature").send_keys("0.75")  # not a tenth, and a temperature all the same
        page.ask("Where?")
        page.wait(lambda: len(page.all(".result textarea")) == 2)
        for field, value in zip(page.all(".result textarea"), ("cold", "warm"), strict=True):
            field.send_keys(value)
        page.all(".results button")[0].click()
        page.wait(lambda: page.texts(".answer"))
        page.wait_for_answer()
        assert [message["content"] for message in conversation(page) if message["role"] == "tool"] == ["cold", "warm"]
        page.ask("And there?")
        page.wait(lambda: len(page.all(".call")) == 4)
        page.by_id("stop").click()
        page.wait_for_answer()
        assert not page.all(".result textarea")
        page.driver.execute_script("window.copied = null")
        assert page.answer("Never mind.") == "Well."
        assert [message["role"] for message in conversation(page)][-3:] == ["assistant", "tool", "user"]


def test_text_of_a_model_stays_text(page: Page) -> None:
    call = f"<tool_call>\n<function=get_weather>\n<parameter=city>\n{MARKUP}\n</parameter>\n</function>\n</tool_call>"
    with running(scripted(f"<think>{MARKUP}</think>{MARKUP}{call}")) as live:
        page.open(live.url)
        page.by_id("tools-example").click()
        page.ask(MARKUP)
        page.wait_for_answer()
        shown = [page.texts(selector)[0] for selector in (".user .text", ".thought .text", ".answer")]
        assert shown == [MARKUP] * 3
        assert json.loads(page.texts(".call pre")[0]) == {"city": MARKUP}
        assert not page.all("#transcript img, #transcript script, #transcript b")
        assert page.driver.title not in ("1", "2")


def test_a_server_with_a_key(page: Page) -> None:
    with running(scripted("Hello.", api_key=("secret",))) as live:
        page.open(live.url)
        key = page.by_id("key")
        assert page.state == "needs a key" and key == page.driver.switch_to.active_element
        assert "needs a key" in page.by_id("welcome").text and not page.by_id("served-panel").is_displayed()
        key.send_keys("wrong")
        page.ask("hi")
        page.wait(lambda: page.all(".error"))
        assert "API key" in page.texts(".error")[0] and page.by_id("question").get_property("value") == "hi"
        key.clear()
        key.send_keys("secret" + Keys.TAB)
        page.wait(lambda: page.state == "ready")
        assert page.answer("") == "Hello."
        page.driver.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        page.all(".copy")[-1].click()
        command = page.wait(lambda: page.driver.execute_script("return window.copied"))
        assert "$OPENAI_API_KEY" in command and "secret" not in command
        browser, here = page.driver, page.driver.current_window_handle
        page.all('nav a[href="docs"]')[0].click()  # a link can not carry the key, so the page opens what it fetched
        page.wait(lambda: len(browser.window_handles) == 2)
        browser.switch_to.window(next(handle for handle in browser.window_handles if handle != here))
        page.wait(lambda: "/v1/chat/completions" in page.all("body")[0].text)
        assert page.style("h1 + p", "fontFamily").startswith("system-ui")
        browser.close()
        browser.switch_to.window(here)


def test_a_server_that_is_gone(page: Page) -> None:
    with running(scripted(Script(text="Half of it.", chunk=4, fault_after=2), "Fine.")) as live:
        page.open(live.url)
        page.ask("hi")
        page.wait(lambda: page.all(".error"))
        assert page.texts(".answer")[0].strip() == "Half of"
        assert "not part of the conversation" in page.texts(".figures")[-1]
        assert page.answer("") == "Fine."
    page.wait(lambda: page.state == "not reachable")
    page.ask("Still there?")
    page.wait(lambda: len(page.all(".error")) == 2)
    assert page.texts(".error")[-1] == "The server can not be reached."
    assert page.by_id("question").get_property("value") == "Still there?"


def channels(colour: str) -> tuple[float, ...]:
    return tuple(float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3])


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two computed colours."""

    def luminance(colour: str) -> float:
        parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour))
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_can_be_read(page: Page) -> None:
    grounds = []
    with running(scripted("<think>Hm.</think>Hello.")) as live:
        page.open(live.url)
        page.answer("hi")
        for is_dark in (False, True):
            prefer_dark(page.driver, is_dark)
            ground = page.style("main", "backgroundColor")
            grounds.append(sum(channels(ground)))
            for selector in (".answer", ".thought", ".figures", ".speaker", ".copy"):
                assert contrast(page.style(selector, "color"), ground) >= 4.5, selector
            assert contrast(page.style("#send", "color"), page.style("#send", "backgroundColor")) >= 4.5
            assert contrast(page.style("#state", "color"), page.style("body", "backgroundColor")) >= 4.5
    assert grounds[0] > 2.5 and grounds[1] < 0.5


def test_nothing_is_wider_than_a_narrow_screen(page: Page) -> None:
    call = (
        f"<tool_call>\n<function=get_weather>\n<parameter=city>\n{'x' * 200}\n</parameter>\n</function>\n</tool_call>"
    )
    with running(scripted(f"<think>{'y' * 200}</think>{'z' * 200}{call}")) as live:
        resize(page.driver, *NARROW)
        page.open(live.url)
        assert not page.overflows()
        page.all("#tools-panel summary")[0].click()
        page.by_id("tools-example").click()
        assert not page.overflows()
        page.ask("w" * 200)
        page.wait_for_answer()
        assert page.all(".result textarea") and not page.overflows()
        button = page.all(".results button")[0]
        composer = page.by_id("composer").rect
        assert button.is_displayed() and button.rect["y"] + button.rect["height"] <= composer["y"]


def test_a_model_without_a_chat_template(page: Page) -> None:
    serving = scripted("Hello.")
    serving._chat = None
    with running(serving) as live:
        page.open(live.url)
        assert "no chat template" in page.by_id("welcome").text and not page.by_id("question").is_enabled()
