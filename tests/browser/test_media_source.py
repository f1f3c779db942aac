"""Payloads in a real browser: Chromium, Media Source Extensions, one payload appended at a time.

The browser is the distribution's, driven through Playwright; without either these tests are
skipped. The page is served by the driver itself, so nothing leaves the machine.
"""

from __future__ import annotations

import base64
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from services.video.media.codecs import CODECS
from services.video.media.encoder import ChunkEncoder
from services.video.media.formats import VideoFormat
from tests.unit.video.media.colours import CORNERS, Rgb, flat, moving, random_colours

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
PAGE = Path(__file__).with_name("media_source.html")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TIMEOUT_MS = 60_000
CLOCK_S = 1e-5
"""What Chromium's clock of whole microseconds takes off an end."""

TOLERANCES = np.array([6, 6, 16])
"""Steps of 255 in red, green and blue. Chromium's own conversion takes part: its factor for blue
ends at 2.0 where BT.709 has 2.11, up to 12 steps."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs the program chromium"),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None, reason="needs the package playwright"
    ),
]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The test's page in a browser of its own."""
    from playwright.sync_api import sync_playwright  # may not be installed

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=CHROMIUM, headless=True, args=list(ARGUMENTS)
        )
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.route(
            "**/*", lambda route: route.fulfill(path=PAGE, content_type="text/html; charset=utf-8")
        )
        page.goto("http://localhost/")
        yield page
        context.close()


def append(page: Page, payload: bytes) -> list[tuple[float, float]]:
    """Append a payload; the ranges of seconds that are buffered then."""
    ranges = page.evaluate("(data) => append(data)", base64.b64encode(payload).decode())
    return [(start, end) for start, end in ranges]


@pytest.mark.parametrize("codec", CODECS)
def test_chromium_says_that_it_plays_what_is_announced(page: Page, codec: str) -> None:
    """WEIR-197: asked with the very string that a client gets; another one is refused."""
    encoder = ChunkEncoder(VideoFormat(640, 384, 24), codec=codec)
    ask = "(mime) => MediaSource.isTypeSupported(mime)"
    assert page.evaluate(ask, encoder.mime_type)
    assert not page.evaluate(ask, encoder.mime_type.replace("codecs=", 'codecs="nonsense.'))
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_each_payload_adds_exactly_its_chunk_and_plays_without_a_dropped_frame(
    page: Page, codec: str
) -> None:
    """WEIR-196, WEIR-198: one range without a gap that grows at once by what was appended."""
    video, sizes = VideoFormat(256, 144, 24), (1, 9, 12, 12, 5, 1, 8, 24)
    encoder = ChunkEncoder(video, codec=codec)
    page.evaluate("(mime) => start(mime)", encoder.mime_type)
    for count in sizes:
        payload = encoder.encode(moving(count, video.width, video.height, encoder.num_frames))
        ((start, end),) = append(page, payload.data)
        assert start == 0
        assert end == pytest.approx(payload.pts_seconds + payload.duration_seconds, abs=CLOCK_S)
    ((start, end),) = append(page, encoder.trailer())
    assert (start, end) == pytest.approx((0, 72 / 24), abs=CLOCK_S)
    assert page.evaluate("finish()") == pytest.approx(72 / 24, abs=CLOCK_S)
    assert page.evaluate("play()") == {"total": 72, "dropped": 0, "corrupted": 0}


@pytest.mark.parametrize("codec", CODECS)
def test_each_frame_has_its_colour_and_its_time(page: Page, codec: str) -> None:
    """WEIR-196, WEIR-198: another colour with every frame, read back from the canvas."""
    colours: list[Rgb] = [*CORNERS, *random_colours(24, seed=4)]
    encoder = ChunkEncoder(VideoFormat(128, 96, 24), codec=codec)
    page.evaluate("(mime) => start(mime)", encoder.mime_type)
    for first, last in ((0, 1), (1, 10), (10, 22), (22, 32)):
        append(page, encoder.encode(flat(colours[first:last], 128, 96)).data)
    page.evaluate("finish()")
    for index, colour in enumerate(colours):
        shown = page.evaluate("(seconds) => colours(seconds)", (index + 0.5) / 24)
        assert shown["time"] == pytest.approx(index / 24, abs=CLOCK_S)
        distance = np.abs(np.array(shown["quarters"]) - colour)
        assert (distance <= TOLERANCES).all(), f"frame {index} of {colour}: {shown['quarters']}"
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_late_viewer_plays_from_the_chunk_it_came_with(page: Page, codec: str) -> None:
    """WEIR-197: the initialization segment and a later chunk are all that it needs."""
    encoder = ChunkEncoder(VideoFormat(128, 96, 24), codec=codec)
    colours = random_colours(3, seed=9)
    payloads = [encoder.encode(flat([colour] * 12, 128, 96)) for colour in colours]
    encoder.close()
    page.evaluate("(mime) => start(mime)", encoder.mime_type)
    assert append(page, encoder.initialization) == []
    ((start, end),) = append(page, payloads[2].data)
    assert (start, end) == pytest.approx((1, 1.5), abs=CLOCK_S)
    shown = page.evaluate("(seconds) => colours(seconds)", 1.25)
    assert (np.abs(np.array(shown["quarters"]) - colours[2]) <= TOLERANCES).all()
