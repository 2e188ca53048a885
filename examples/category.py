"""Items with a type, and links that are chosen: the goods of one category of a shop, page by page.

    python -m gossamer.testing.web shop --port 8000
    gossamer run examples/category.py -a category=candles --allow 127.0.0.1

An item that does not fit the class (no name, a price that is no number) is not stored: it is counted as invalid, with an
example. Links are followed by what they are for: the cards of the grid get the label of the handler that reads them.
"""

from dataclasses import dataclass

from gossamer import Page, Spider


@dataclass
class Product:
    name: str
    price: float
    in_stock: int
    url: str


goods = Spider(
    "goods",
    start=lambda: f"{goods.args.site}/category/{goods.args.category}/",
    item=Product,
    args={"site": "http://127.0.0.1:8000", "category": "candles"},
)


@goods.page("/category/{name}/{rest:path}")
def category(page: Page):
    yield page.follow(".grid a", label="product")
    yield page.follow("a.next")


@goods.page(label="product")
def product(page: Page):
    stock = page.css(".stock").text or ""
    if stock == "Sold out":
        page.count("sold out")
    yield Product(
        name=page.css("h1").text,
        price=float(page.css(".price").text.removeprefix("£")),
        in_stock=int(stock.split()[0]) if stock.endswith("in stock") else 0,
        url=page.url,
    )
