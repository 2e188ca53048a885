"""How the little shop looks: plain HTML and a little CSS, nice enough to be shown to people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gossamer.testing.web.catalogue import CATEGORIES, Product

STYLE = """
body{font:16px/1.6 Georgia,serif;color:#333;background:#faf8f4;margin:0}
a{color:#7a4a2b;text-decoration:none}a:hover{text-decoration:underline}
header,main,footer{max-width:960px;margin:0 auto;padding:16px 24px}
header{display:flex;justify-content:space-between;align-items:baseline;border-bottom:1px solid #e4ddd0}
header .name{font-size:1.5em;font-weight:bold}
nav.categories{max-width:960px;margin:0 auto;padding:8px 24px;font-size:.9em}nav.categories a{margin-right:12px}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:18px;padding:0;list-style:none}
.card{background:#fff;border:1px solid #eee6d8;border-radius:8px;padding:14px}
.card img,.product img{width:100%;max-width:280px;border-radius:6px;image-rendering:pixelated}
.price{font-weight:bold;color:#2b6a4a}.stock{color:#777;font-size:.9em}
.product{display:grid;grid-template-columns:280px 1fr;gap:32px}
.pager{margin:24px 0;display:flex;gap:16px}footer{color:#888;font-size:.85em;border-top:1px solid #e4ddd0;margin-top:32px}
"""


def page(title: str, content: str) -> str:
    categories = "".join(f'<a href="{category_path(name)}">{name}</a>' for name in CATEGORIES)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)} · The Spoke &amp; Spiral</title>'
        f'<style>{STYLE}</style></head>\n<body>\n<header><a class="name" href="/">The Spoke &amp; Spiral</a>'
        f'<span><a href="/new">New</a> · <a href="/offers">Offers</a> · <a href="/about">About</a> · '
        f'<a href="/cart" rel="nofollow">Cart</a></span></header>\n<nav class="categories">{categories}</nav>\n'
        f"<main>\n{content}\n</main>\n"
        f'<footer>A shop that sells nothing: every word here is made up. <a href="/terms">Terms</a> · '
        f'<a href="/admin/login">Staff</a> · <a href="mailto:hello@shop.example">Write to us</a></footer>\n'
        f"</body></html>\n"
    )


def category_path(name: str, number: int = 1) -> str:
    path = f"/category/{name.lower()}/"
    return path if number == 1 else f"{path}page/{number}"


def home(products: Sequence[Product]) -> str:
    favourite = (
        f'<p>Our favourite this week: <a href="/product/{products[0].number}">{products[0].title}</a></p>'
    )
    return page("Home", f"<h1>Good things, slowly made</h1>\n{favourite}\n{_grid(products)}")


def category_page(name: str, number: int, last: int, products: Iterable[Product]) -> str:
    links = []
    if number > 1:
        links.append(
            f'<a class="previous" rel="prev" href="{category_path(name, number - 1)}">← Previous</a>'
        )
    links.append(f"<span>Page {number} of {last}</span>")
    if number < last:
        links.append(f'<a class="next" rel="next" href="{category_path(name, number + 1)}">Next →</a>')
    title = name if number == 1 else f"{name}, page {number}"
    return page(title, f'<h1>{title}</h1>\n{_grid(products)}\n<div class="pager">{"".join(links)}</div>')


def product_page(product: Product, related: Iterable[Product], broken: str | None) -> str:
    stock = f"{product.stock} in stock" if product.stock else "Sold out"
    gone = f'<p>See also <a href="{broken}">the older model</a>.</p>' if broken else ""
    links = "".join(f'<li><a href="{other.path}">{escape(other.title)}</a></li>' for other in related)
    category = f'<a href="{category_path(product.category)}">{product.category}</a>'
    return page(
        product.title,
        f'<p class="breadcrumb"><a href="/">Home</a> › {category}</p>\n<article class="product">\n'
        f'<img src="/image/{product.number}.png" alt="{escape(product.title)}">\n<div>'
        f'<h1 class="title">{escape(product.title)}</h1>\n<p class="price">{product.price}</p>\n'
        f'<p class="stock">{stock}</p>\n<p class="description">{escape(product.description)}</p>\n{gone}'
        f'<p><a href="/cart?add={product.number}" rel="nofollow">Put it in the cart</a></p></div>\n</article>\n'
        f'<h2>Goes well with</h2>\n<ul class="related">{links}</ul>',
    )


def words(title: str, text: str) -> str:
    return page(title, f"<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>")


def sitemap(base: str, paths: Iterable[str]) -> str:
    rows = "".join(f"<url><loc>{base}{path}</loc></url>\n" for path in paths)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{rows}</urlset>\n"
    )


def _grid(products: Iterable[Product]) -> str:
    cards = "".join(
        f'<li class="card"><a href="{product.path}"><img src="/image/{product.number}.png" alt="">'
        f'<br>{escape(product.title)}</a><br><span class="price">{product.price}</span></li>\n'
        for product in products
    )
    return f'<ul class="grid">\n{cards}</ul>'
