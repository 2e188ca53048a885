"""The shop: what it promises to a first crawl is there."""

from __future__ import annotations

import zlib
from urllib.parse import urljoin

from simple_crawler import Reader, fetch

from gossamer.testing.web import Shop, serve


async def test_a_visitor_meets_everything_the_shop_promises() -> None:
    """Following every link from the door reaches all pages, the broken and failing ones, and closed doors only by name."""
    shop = Shop()
    shop.slow = dict.fromkeys(shop.slow, 0.001)
    statuses: dict[str, list[int]] = {}
    async with serve(shop) as origin:
        waiting = [origin.url]
        while waiting:
            url = waiting.pop()
            path = "/" + url.removeprefix(origin.url)
            if path in statuses or path.startswith(("/cart", "/admin")):
                statuses.setdefault(path, [])
                continue
            answer = await fetch(url)
            seen = statuses[path] = [answer.status]
            while answer.status >= 500 and len(seen) < 4:
                answer = await fetch(url)
                seen.append(answer.status)
            hrefs = Reader(answer.body.decode()).hrefs
            hrefs += [answer.headers["location"]] if "location" in answer.headers else []
            waiting += [urljoin(url, href) for href in hrefs if not href.startswith("mailto:")]
        assert set(shop.paths) == {path for path, seen in statuses.items() if seen[-1:] == [200]}
    ends = [seen[-1] for seen in statuses.values() if seen]
    assert len([path for path in shop.paths if path.startswith("/product/")]) == 300
    assert ends.count(404) == 3
    assert statuses["/offers"] == [503] * 4
    assert sorted(seen for path, seen in statuses.items() if len(seen) > 1 and path != "/offers") == [
        [500, 200],
        [503, 500, 200],
    ]
    assert [statuses[path][0] for path in ("/new", f"/product/{shop.products[0].number}")] == [302, 301]
    assert any(path.startswith("/cart") for path in statuses)
    assert "/admin/login" in statuses


async def test_a_product_page_shows_the_product() -> None:
    """Title, price, stock, description, picture and related goods are on the page as in the catalogue."""
    shop = Shop(seed=3)
    product = shop.products[100]
    async with serve(shop) as origin:
        page = Reader((await fetch(origin.url + product.path[1:])).body.decode())
        picture = await fetch(f"{origin.url}image/{product.number}.png")
    assert page.texts["h1"] == product.title
    assert product.price in page.texts["p"]
    assert product.description in page.texts["p"]
    assert [href for href in page.hrefs if href.startswith("/product/")] == [
        shop.products[number - 1].path for number in product.related
    ]
    assert picture.headers["content-type"] == "image/png"
    header, data = picture.body[:24], picture.body[picture.body.index(b"IDAT") + 4 : -16]
    assert header == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (96).to_bytes(4) * 2
    assert len(zlib.decompress(data)) == 96 * (96 * 3 + 1)


async def test_sitemap_and_robots_tell_the_truth() -> None:
    """The sitemap lists every readable page, robots.txt names it and closes two doors."""
    shop = Shop(products=24)
    async with serve(shop) as origin:
        robots = (await fetch(f"{origin.url}robots.txt")).body.decode()
        sitemap = (await fetch(f"{origin.url}sitemap.xml")).body.decode()
    assert f"Sitemap: {origin.url}sitemap.xml" in robots
    assert {"Disallow: /cart", "Disallow: /admin"} <= set(robots.splitlines())
    assert all(f"<loc>{origin.url}{path[1:]}</loc>" in sitemap for path in shop.paths)


def test_equal_seeds_make_equal_shops() -> None:
    """The shop is a function of its seed."""
    assert Shop(5).products == Shop(5).products != Shop(6).products
