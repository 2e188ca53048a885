"""Take every product of a shop.

    python -m gossamer.testing.web shop --port 8000
    gossamer run examples/shop.py -a start=http://127.0.0.1:8000/ --allow 127.0.0.1

`gossamer demo` does both with this spider. `--allow` names the host at the keyboard: only so may it have an address of
this machine.
"""

from gossamer import Page, Spider

shop = Spider("shop", start=lambda: shop.args.start, args={"start": "http://127.0.0.1:8000/"})


@shop.page("/product/{slug}")
def product(page: Page):
    yield {
        "name": page.css("h1").text,
        "price": page.css(".price").text,
        "stock": page.css(".stock").text,
        "image": page.css("img").attr("src"),
        "url": page.url,
    }
    yield page.follow()


@shop.page()
def listing(page: Page):
    yield page.follow()
