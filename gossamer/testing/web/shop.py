"""A small shop with everything a first crawl meets: paging, pictures, broken links, moods and closed doors.

About one product in a hundred links to a page that is gone; two products fail once or twice before they answer; one
page is always out of order; a few are slow; /new and the short product addresses redirect; /cart and /admin are
closed by robots.txt though every page links to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer.testing.web import shopfront
from gossamer.testing.web.catalogue import CATEGORIES, catalogue
from gossamer.testing.web.png import picture
from gossamer.testing.web.reply import Reply, Request, plain, redirect, respond
from gossamer.testing.web.site import loopback

PER_PAGE = 12
ROBOTS = "User-agent: *\nDisallow: /cart\nDisallow: /admin\n"
ABOUT = "We are a shop for people who crawl. Nothing is for sale, everything is linked."
TERMS = "Be polite, read robots.txt, and come back when asked to."


class Shop:
    """A shop of `products` goods in twelve categories on one host, equal for equal seeds."""

    counted = True

    def __init__(self, seed: int = 1, products: int = 300) -> None:
        self.products = catalogue(seed, products)
        self.addresses = loopback(1)
        self._seed = seed
        self.hosts: list[str] = []
        self._base = ""
        every = max(1, products // max(2, products // 100))
        self.broken = {
            product.number: f"/product/{product.number}-older-model" for product in self.products[4::every]
        }
        self.fails = {self.products[7].path: (500,), self.products[-9].path: (503, 500)}
        self.slow = {
            self.products[place].path: seconds for place, seconds in ((3, 1.0), (-2, 1.5), (-5, 2.0))
        }
        self.redirects = {"/new": shopfront.category_path(CATEGORIES[3]), "/shop": "/"}
        self.redirects |= {f"/product/{product.number}": product.path for product in self.products}
        self._pages = self._all_pages()
        self._pictures: dict[str, bytes] = {}

    @property
    def seeds(self) -> list[str]:
        return [f"{self._base}/"]

    @property
    def paths(self) -> list[str]:
        """Every page that answers 200 in the end; pictures are not pages."""
        return list(self._pages)

    def bind(self, hosts: Sequence[str], scheme: str = "http") -> None:
        self.hosts = list(hosts)
        self._base = f"{scheme}://{hosts[0]}"

    def answer(self, request: Request, attempt: int) -> Reply:
        path = request.target.partition("?")[0]
        if path in self._pages:
            return self._page(path, attempt)
        if path in self.redirects:
            return redirect(301 if path.startswith("/product/") else 302, self.redirects[path])
        if path == "/robots.txt":
            return plain(200, f"{ROBOTS}Sitemap: {self._base}/sitemap.xml\n")
        if path == "/sitemap.xml":
            return respond(200, shopfront.sitemap(self._base, self._pages), "application/xml")
        if path == "/offers":
            return respond(503, shopfront.words("Offers", "Out of order. It always is."))
        if path.startswith("/image/"):
            return self._picture(path)
        if path == "/cart" or path.startswith("/admin"):
            return respond(
                200, shopfront.words("Private", "A crawler that reads this did not read robots.txt.")
            )
        return respond(404, shopfront.words("Not here", "There is no such page, or not any more."))

    def _page(self, path: str, attempt: int) -> Reply:
        fails = self.fails.get(path, ())
        if attempt <= len(fails):
            return respond(fails[attempt - 1], shopfront.words("Oh dear", "Try again in a moment."))
        reply = respond(200, self._pages[path]())
        reply.delay = self.slow.get(path, 0.0)
        return reply

    def _picture(self, path: str) -> Reply:
        number = path.removeprefix("/image/").removesuffix(".png")
        if not number.isdigit() or not 1 <= int(number) <= len(self.products):
            return plain(404, "no such picture\n")
        if path not in self._pictures:
            self._pictures[path] = picture(f"{self._seed} {number}")
        return respond(200, self._pictures[path], "image/png", ["Cache-Control: max-age=3600"])

    def _all_pages(self) -> dict[str, Callable[[], str]]:
        pages: dict[str, Callable[[], str]] = {
            "/": lambda: shopfront.home(self.products[:: max(1, len(self.products) // 16)][:16]),
            "/about": lambda: shopfront.words("About", ABOUT),
            "/terms": lambda: shopfront.words("Terms", TERMS),
        }
        for name in CATEGORIES:
            pages |= self._category(name)
        for product in self.products:
            pages[product.path] = self._product(product.number)
        return pages

    def _category(self, name: str) -> dict[str, Callable[[], str]]:
        goods = [product for product in self.products if product.category == name]
        last = -(-len(goods) // PER_PAGE)

        def render(number: int) -> Callable[[], str]:
            shown = goods[(number - 1) * PER_PAGE : number * PER_PAGE]
            return lambda: shopfront.category_page(name, number, last, shown)

        return {shopfront.category_path(name, number): render(number) for number in range(1, last + 1)}

    def _product(self, number: int) -> Callable[[], str]:
        product = self.products[number - 1]
        related = [self.products[other - 1] for other in product.related]
        return lambda: shopfront.product_page(product, related, self.broken.get(number))
