"""A page in headless Chromium: what its charts show under a pointer, its errors and its requests."""

import json
import shutil
import subprocess
from html import unescape
from pathlib import Path
from re import search
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Runs before the scripts of the page, and again when it is complete.
_PROBE = """<script>
const seen = { errors: [], shown: [], requests: [] };
window.addEventListener("error", (event) => seen.errors.push(String(event.message)));
document.addEventListener("securitypolicyviolation", (event) => seen.errors.push(event.blockedURI));
window.addEventListener("load", () => {
  for (const figure of document.querySelectorAll("figure.chart")) {
    const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    svg.dispatchEvent(new PointerEvent("pointermove", at));
    seen.shown.push(figure.querySelector(".shown").innerText);
  }
  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name.slice(0, 60));
  seen.images = [...document.images].every((image) => image.loading === "lazy" || image.naturalWidth > 0);
  seen.elements = document.querySelectorAll("img, script, iframe, link, b.injected").length;
  document.body.dataset.seen = JSON.stringify(seen);
});
</script>"""


def look_at(page: str, folder: Path) -> dict[str, Any]:
    """What a browser sees of a page: ``errors``, ``requests``, and ``shown``: the text of each chart under a pointer.

    The test is skipped where there is no Chromium.
    """
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip(f"no browser: {', '.join(_NAMES)}")
    # Beside the policy of the page, so that it holds for the page as it is.
    probed = folder / "probed.html"
    probed.write_text(page.replace("<style>", f"{_PROBE}<style>", 1), encoding="utf-8")
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    switches += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    switches += [f"--user-data-dir={folder / 'browser'}", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [browser, *switches, probed.as_uri()], capture_output=True, text=True, timeout=120.0, check=True
    )
    found = search('data-seen="([^"]*)"', done.stdout)
    assert found is not None, done.stderr
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    seen["errors"] += [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return seen
