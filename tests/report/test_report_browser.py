"""The page in a real Chromium: it needs no network, reacts, reads on a telephone and in print, and shuts nobody out."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def opened(chromium, reported):
    """`opened(width, fragment)`: the page in a window of its own; at the end nothing was wrong with any of them."""
    said, asked, pages = [], [], []

    def open_page(width=1280, fragment=""):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(60_000)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(reported.page.as_uri() + fragment)
        pages.append(page)
        return page

    yield open_page
    titles = {page.title() for page in pages}
    for page in pages:
        page.close()
    assert [line for line in said if line.startswith(("error", "Uncaught")) or "Error" in line] == []
    assert {url.partition("#")[0] for url in asked if not url.startswith("data:")} <= {reported.page.as_uri()}
    assert titles == {"fishpool: report"}  # what hostile text would have changed


def enlivened(page, key):
    figure = page.locator(f'figure[data-figure="{key}"]')
    figure.scroll_into_view_if_needed()
    page.wait_for_selector(f'figure[data-figure="{key}"][data-live]')
    return figure


def point_at(page, mark):
    """The tooltip of a mark; the pointer moves about on it as a hand does, since one leap onto it may tell nothing."""
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tooltip = page.locator("#vg-tooltip-element.visible")
    for step in range(100):
        page.mouse.move(x + step % 2, y)
        page.wait_for_timeout(100)
        if tooltip.is_visible():
            return tooltip
    raise AssertionError("the mark has no tooltip")


def test_every_figure_comes_alive_when_it_is_scrolled_to(opened, reported):
    page = opened()
    assert page.locator("figure[data-live]").count() < len(reported.asked)
    for key in reported.asked:
        figure = enlivened(page, key)
        assert figure.locator(".live svg").is_visible()
        assert not figure.locator("img").is_visible()


def test_a_mark_tells_its_numbers_and_a_legend_filters(opened):
    page = opened()
    figure = enlivened(page, "rq10")
    dimmed = 'figure[data-figure="rq10"] .live svg [opacity^="0.0"]'
    assert page.locator(dimmed).count() == 0
    figure.locator(".role-legend-label text").first.click(force=True)
    page.wait_for_selector(dimmed, state="attached")
    assert "round" in point_at(page, figure.locator(".mark-symbol.role-mark path").first).inner_text()


def test_hostile_names_are_text_in_a_tooltip(opened):
    page = opened()
    figure = enlivened(page, "rq09")
    cells = figure.locator(".mark-rect.role-mark path").all()[::-1]
    assert any("<b>model</b>" in point_at(page, cell).inner_text() for cell in cells)  # under the number on it
    assert page.locator("#vg-tooltip-element b").count() == 0


def test_a_replay_opens_from_a_link_by_keyboard_and_closes_again(opened):
    page = opened()
    link = page.locator("a.run", has_text="pool:silent:0").first
    link.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#replay")
    assert dialog.locator("h2").inner_text() == "pool:silent:0"
    assert dialog.locator("svg.stock").is_visible()
    assert dialog.locator("mark", has_text="broken: demanded 12").count() > 0
    assert dialog.locator("mark", has_text="untrue: caught").count() > 0
    exchange = dialog.locator("details.exchange").first
    exchange.locator("summary").focus()
    page.keyboard.press("Enter")
    assert "said, as received" in exchange.inner_text()
    assert "<img src=x" in exchange.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.evaluate("location.hash") == ""


def test_a_run_can_be_linked_to(opened):
    page = opened(fragment="#run=open:published:0")
    assert page.locator("#replay h2").inner_text() == "open:published:0"
    page.locator("#replay button").click()
    assert not page.locator("#replay").is_visible()
    for fragment in ("#run=no:such:0", "#run=%", "#run=toString"):
        assert not opened(fragment=fragment).locator("#replay").is_visible()


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_the_page_never_scrolls_sideways(opened, width):
    page = opened(width)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    enlivened(page, "rq12")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("location.hash = '#run=pool:silent:0'")
    page.wait_for_selector("#replay h2")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(
        "document.getElementById('replay').scrollWidth <= document.getElementById('replay').clientWidth"
    )


def test_it_prints_without_what_only_a_screen_needs(opened):
    page = opened()
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("summary").first.is_visible()
    assert page.locator("#rq01").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("fragment", ["", "#run=pool:silent:0", "#run=open:published:0", "match"])
def test_axe_finds_no_serious_fault(opened, fragment, reported):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    if fragment == "match":
        fragment = (
            "#run="
            + next(line for line in reported.page.read_text().split("#run=") if line.startswith("pairs:")).partition(
                '"'
            )[0]
        )
    page = opened(fragment=fragment)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    if not fragment:
        enlivened(page, "rq01")
    found = axe.Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []


def test_it_is_small(reported):
    assert reported.page.stat().st_size < 15_000_000
