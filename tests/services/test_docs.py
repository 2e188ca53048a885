"""The pages for people: generated ones are up to date, links lead somewhere, code works, two languages say the same."""

from __future__ import annotations

import re
import runpy
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from gossamer import Spider
from gossamer.model.settings import Settings
from gossamer.services import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
PAGES = [*READMES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
GENERATED = {"cli.md", "settings.md"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(text(page)) if kind == language]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_generated_pages_are_up_to_date() -> None:
    """`python docs/generate.py` would change nothing: the reference says what the program says."""
    pages: dict[Path, str] = runpy.run_path(str(DOCS / "generate.py"))["pages"]()

    stale = [named(path) for path, content in pages.items() if text(path) != content]
    assert {path.name for path in pages} == GENERATED
    assert stale == [], "run: python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the project finds it, and its heading if it names one."""
    broken = []
    for link in LINK.findall(BLOCK.sub("", text(page))):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_python_in_pages_compiles(page: Path) -> None:
    """Every piece of Python is Python (with await and yield, which stand in handlers)."""
    for code in blocks(page, "python"):
        indented = "".join(f"    {line}\n" for line in code.splitlines())
        compiled = compile(f"async def page():\n{indented}", named(page), "exec", dont_inherit=True)
        assert isinstance(compiled, CodeType)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=named)
def test_commands_and_settings_in_pages_exist(page: Path) -> None:
    """A command, an option or a setting that a page speaks of is one that the program has."""
    commands = {command.__name__.replace("_", "-") for command, _, _ in cli.COMMANDS}
    options = set(re.findall(r"--[a-z][a-z-]+", text(DOCS / "reference" / "cli.md")))
    lines = [line for code in blocks(page, "console") for line in code.splitlines() if line.startswith("$ ")]
    lines += [code for code in re.findall(r"`([^`\n]+)`", text(page)) if code.startswith("gossamer ")]
    ours = [line for line in lines if re.search(r"(^|/| )gossamer ", line)]

    used = {word for line in ours for word in re.findall(r"gossamer ([a-z][a-z-]*)", line)}
    typed = set(chain.from_iterable(re.findall(r" (--[a-z][a-z-]+)", line) for line in ours))
    told = {name for line in ours if "concurency" not in line for name in re.findall(r"-s '?(\w+)=", line)}
    assert used <= commands
    assert typed <= options
    assert told - {"name", "setting"} <= set(Settings.__struct_fields__)


def test_both_readmes_are_alike() -> None:
    """Section by section the same: headings, code, tables and links; only the words differ."""

    def shape(page: Path) -> list[Any]:
        lines = text(page).splitlines()
        return [
            [len(line.partition(" ")[0]) for line in lines if line.startswith("#")],
            BLOCK.findall(text(page)),
            [line.partition("|")[2].partition("|")[0] for line in lines if line.startswith("| `")],
            sum(line.startswith("- ") for line in lines),
            sorted(set(LINK.findall(text(page))) - {"README.md", "README.zh.md"}),
            [line for line in lines if line.startswith("<!--")],
        ]

    english, chinese = READMES
    assert shape(english) == shape(chinese)


def test_the_spider_of_the_readme_takes_products() -> None:
    """The first code that a newcomer copies does what the page says."""
    [code] = blocks(READMES[0], "python")
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    shop: Spider = names["shop"]
    html = '<h1>Warm Rake</h1><p class="price">£111.45</p><ul><li class="card"><a href="/product/2-tall-hose">x</a></ul>'

    trial = shop.try_page("http://127.0.0.1:8000/product/1-warm-rake", html)
    assert trial.items == [{"name": "Warm Rake", "price": "£111.45"}]
    assert shop.try_page("http://127.0.0.1:8000/", html).urls == ["http://127.0.0.1:8000/product/2-tall-hose"]


def test_the_pieces_of_the_tutorial_fit_together() -> None:
    """The typed spider with the handler of several pages in the place of the first one does what the page says."""
    first, _, typed, several, *_ = blocks(DOCS / "tutorial" / "first-spider.md", "python")
    names: dict[str, Any] = {"__name__": "books"}
    for code in ("from gossamer import Page, Spider", typed, several, first[first.index("@books.page()") :]):
        exec(compile(code, "first-spider.md", "exec", dont_inherit=True), names)
    page = "https://books.example/catalogue/x/"
    pages = {page + "reviews.html": "<p class=review>good</p>"}
    trial = names["books"].try_page(page + "index.html", "<h1>A</h1>", pages=pages)
    assert (trial.items, trial.dropped) == ([{"title": "A", "reviews": ["good"]}], [])
