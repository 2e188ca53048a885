"""The pages of the known web as HTML: a title, a heading, and links in all the spellings that browsers accept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from html import escape

from gossamer.testing.web.filler import WORDS

NO_PAGES = (
    "mailto:somebody@web.example",
    "javascript:void(0)",
    "tel:+10000000",
    "data:text/plain,nothing",
    "#top",
    " javascript:alert('x')",
)


class Writer:
    """Writes one page. `host` is its own host:port: links that stay there may be written in shorter ways."""

    def __init__(self, host: str, path: str, number: int) -> None:
        self._host = host
        self._path = path
        self._draw = random.Random(number)

    def page(self, title: str, hrefs: Sequence[str], charset: str = "utf-8", *, declared: bool = True) -> str:
        """An HTML page with these links in this order and links that lead nowhere between them."""
        meta = f'<meta charset="{charset}">' if declared else ""
        items = [f'<li><a href="{escape(href)}">{self._words(3)}</a></li>' for href in hrefs]
        for href in self._draw.sample(NO_PAGES, 2):
            items.insert(self._draw.randint(0, len(items)), f'<li><a href="{escape(href)}">nowhere</a></li>')
        listed = "\n".join(items)
        return (
            f'<!doctype html>\n<html><head>{meta}<title>{escape(title)}</title></head>\n<body id="top">\n'
            f"<h1>{escape(title)}</h1>\n<p>{self._words(40)}.</p>\n<ul>\n{listed}\n</ul>\n"
            f'<!-- <a href="/only/in/a/comment">no link</a> -->\n</body></html>\n'
        )

    def spell(self, host: str, path: str) -> str:
        """One of the ways to write the link to a page; all mean the same URL."""
        whole = f"http://{host}{path}"
        ways = [whole, f"HTTP://{host}{path}", f"//{host}{path}", f"{whole}#part", f"\n  {whole}\t"]
        if host == self._host:
            ways += [path, f"/nowhere/..{path}", f"/.{path}", f"{path}#{self._draw.choice(WORDS)}"]
        if "%C3%A9" in path:
            ways.append(whole.replace("%C3%A9", "é"))
        return self._draw.choice(ways)

    def _words(self, count: int) -> str:
        return " ".join(self._draw.choices(WORDS, k=count))
