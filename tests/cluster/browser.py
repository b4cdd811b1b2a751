"""A picture of a page, taken by a real Chromium without a window."""

from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tests.services.packages import program

PACKAGE: Final = "chromium"
SIZE: Final = {"width": 1_440, "height": 1_000}


def screenshot(url: str, path: Path) -> None:
    """Write a PNG of a whole page; raises AssertionError if it has no heading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=program("chromium", PACKAGE), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": SIZE["width"], "height": SIZE["height"]})
        page.goto(url)
        assert page.locator("h1").count(), f"{url} is not a page of ours"
        page.screenshot(path=path, full_page=True)
        browser.close()
