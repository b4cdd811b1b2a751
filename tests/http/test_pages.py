"""The pages in a real browser: readable at two widths, light and dark, by keyboard, no faults.

Screenshots stay in .artifacts/pages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, sync_playwright

from tests.content.tree import ROOT
from tests.http.kit import READER, WRITER, Served, served
from tests.http.scene import HOSTILE, play
from tests.services.packages import program

ARTIFACTS = ROOT / ".artifacts" / "pages"
WIDE: ViewportSize = {"width": 1440, "height": 1000}
NARROW: ViewportSize = {"width": 390, "height": 844}
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

PAGES = {
    "incidents": "/incidents",
    "incident": "/incidents/inc-bleed1",
    "finding": "/findings/bleed1",
    "rules": "/rules",
    "runbook": "/runbooks/BW001",
    "empty": "/incidents?tenant=nobody",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("scene")) as api:
        play(api)
        yield api


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = program("chromium", "chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@contextmanager
def signed_in(
    browser: Browser,
    api: Served,
    token: str,
    *,
    viewport: ViewportSize = WIDE,
    scheme: Any = "light",
) -> Iterator[Page]:
    """Give a page of somebody who has signed in; it must load nothing from elsewhere."""
    context = browser.new_context(base_url=api.url, viewport=viewport, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: _note(complaints, message))
    page.on("dialog", lambda dialog: complaints.append(f"a script ran: {dialog.message}"))
    try:
        page.goto("/incidents")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.wait_for_url("**/incidents")
        yield page
        assert not complaints
        assert all(url.startswith((api.url, "data:")) for url in asked)
    finally:
        context.close()


def _note(complaints: list[str], message: ConsoleMessage) -> None:
    if message.type in {"error", "warning"}:
        complaints.append(message.text)


def faults(page: Page) -> list[str]:
    """Return what axe finds that keeps somebody from using a page."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")
    return [
        f"{one['id']}: {node['html']}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


@pytest.mark.parametrize(
    ("size", "viewport", "scheme"), [("wide", WIDE, "light"), ("narrow", NARROW, "dark")]
)
def test_pages_are_readable_and_without_serious_faults(
    scene: Served, browser: Browser, size: str, viewport: ViewportSize, scheme: str
) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with signed_in(browser, scene, WRITER, viewport=viewport, scheme=scheme) as page:
        for name, path in PAGES.items():
            page.goto(path)
            page.screenshot(path=ARTIFACTS / f"{name}-{size}-{scheme}.png", full_page=True)
            assert faults(page) == []
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= viewport["width"], f"{name} must be scrolled sideways"


def test_an_incident_is_understood_and_taken_by_keyboard_alone(
    scene: Served, browser: Browser
) -> None:
    with signed_in(browser, scene, WRITER) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.get_by_role("link", name="The response to globex").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/incidents/inc-bleed1")
        assert (
            page.get_by_role("heading", level=1).inner_text().startswith("The response to globex")
        )
        assert page.get_by_role("img", name="3 matching runs").count() == 1
        assert page.get_by_role("img", name="4 findings and").count() == 1
        text = page.inner_text("main")
        for told in ("12 shingles (own prompt)", "3 failures", "801 requests"):
            assert told in text
        page.get_by_label("Why, or what you do").focus()
        page.keyboard.type("on it")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("taken by walt").wait_for()
        assert "acknowledged by walt: on it" in page.inner_text("main")


def test_hostile_names_are_shown_as_they_are(scene: Served, browser: Browser) -> None:
    with signed_in(browser, scene, READER) as page:
        page.goto("/incidents/inc-bleed1")
        assert page.locator("main img, main script").count() == 0
        assert HOSTILE in page.inner_text("main")
        assert page.get_by_role("button", name="Acknowledge").count() == 0
        page.goto("/incidents")
        page.get_by_role("textbox", name="Tenant").fill(HOSTILE)
        page.get_by_role("button", name="Show").click()
        assert page.get_by_role("textbox", name="Tenant").input_value() == HOSTILE
        assert page.get_by_role("link", name="The response to globex").count() == 1


def test_a_verdict_and_the_blast_radius_are_a_click_away(scene: Served, browser: Browser) -> None:
    with signed_in(browser, scene, WRITER) as page:
        page.goto("/findings/bleed2")
        page.get_by_role("button", name="False alarm").click()
        page.get_by_text("false positive by walt").wait_for()
        page.goto("/rules")
        assert "50.0%" in page.inner_text("main")
        page.goto("/incidents/inc-bleed1")
        with page.expect_download() as saved:
            page.get_by_role("link", name="Save as CSV").click()
        lines = Path(saved.value.path()).read_text().splitlines()
        assert lines[0] == "tenant,requests"
        assert "'=cmd(),20" in lines, "no spreadsheet takes it for a formula"
        assert len(lines) == 41
