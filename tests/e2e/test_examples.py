"""Every example is run as its reader would run it: by the `gossamer` command, against a served site."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.testing.web import Child, Shop, start_child

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PRODUCTS = 60
QUICK = [
    "--allow",
    "127.0.0.1",
    "--delay",
    "0",
    "-s",
    "retries=2",
    "-s",
    "retry_delay=50ms",
    "--json",
    "--quiet",
]

Items = list[dict[str, Any]]
Run = Callable[..., tuple[int, dict[str, Any], Items]]


@pytest.fixture(scope="module")
def shop() -> Iterator[Child]:
    with start_child("shop", products=PRODUCTS) as child:
        yield child


@pytest.fixture
def truth(shop: Child) -> Shop:
    """The same shop in this process, to compare with."""
    site = Shop(products=PRODUCTS)
    site.bind(shop.hosts)
    return site


@pytest.fixture(scope="module")
def library() -> Iterator[str]:
    """The address of examples/site.py, running."""
    process = subprocess.Popen([sys.executable, EXAMPLES / "site.py"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"].rstrip("/")
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`gossamer run examples/NAME.py …`: exit code, the summary of --json, the items."""

    def run(name: str, *words: str, **environment: str) -> tuple[int, dict[str, Any], Items]:
        output = tmp_path / f"{name}.jsonl"
        gossamer = [sys.executable, "-m", "gossamer.services.cli"]
        command = [*gossamer, "run", EXAMPLES / f"{name}.py", *words, *QUICK, "--output", output]
        environment = os.environ | environment
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stdout, done.stderr
        items = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
        return done.returncode, json.loads(done.stdout.splitlines()[-1]), items

    return run


def test_shop_takes_every_product(shop: Child, truth: Shop, run: Run) -> None:
    """examples/shop.py takes each product once, with name and price; the page that is always out of order makes it 3."""
    code, summary, items = run("shop", "-a", f"start={shop.url}")

    assert code == 3
    assert (summary["state"], summary["failed"]) == ("COMPLETED", 1)
    assert sorted((item["name"], item["price"]) for item in items) == sorted(
        (product.title, product.price) for product in truth.products
    )
    assert all(item["image"].startswith("/image/") and item["stock"] for item in items)


def test_category_takes_typed_items_of_one_category(shop: Child, truth: Shop, run: Run) -> None:
    """examples/category.py follows the pages of one category only, and its items hold numbers."""
    code, summary, items = run("category", "-a", f"site={shop.url.rstrip('/')}", "-a", "category=candles")

    wanted = [product for product in truth.products if product.category == "Candles"]
    assert code == 0
    assert sorted((item["name"], item["price"], item["in_stock"]) for item in items) == sorted(
        (product.title, float(product.price[1:]), product.stock) for product in wanted
    )
    assert summary["pages"] < PRODUCTS


def test_failures_lists_broken_links_with_the_page_they_are_on(shop: Child, truth: Shop, run: Run) -> None:
    """examples/failures.py writes each 404 and the 503 that never heals, and nothing else."""
    code, _, items = run("failures", "-a", f"start={shop.url}")

    base = shop.url.rstrip("/")
    paths = {product.number: product.path for product in truth.products}
    wanted = {(base + url, "http_404", base + paths[number]) for number, url in truth.broken.items()}
    found = {(item["url"], item["why"], item["linked_from"]) for item in items}
    assert code == 3
    assert wanted
    assert {broken for broken in found if broken[1] == "http_404"} == wanted
    assert [(url, why) for url, why, _ in found - wanted] == [(f"{base}/offers", "http_503")]


def test_api_reads_all_pages_of_a_list(library: str, run: Run) -> None:
    """examples/api.py follows `next` to the end of the list."""
    code, _, items = run("api", "-a", f"site={library}")

    assert code == 0
    assert sorted(item["id"] for item in items) == list(range(1, 46))


def test_api_searches_by_post(library: str, run: Run) -> None:
    """With an argument, examples/api.py sends a JSON body and gets only what it asked for."""
    code, summary, items = run("api", "-a", f"site={library}", "-a", "since=2010")

    assert (code, summary["pages"]) == (0, 1)
    assert items
    assert all(item["year"] >= 2010 for item in items)


def test_login_reads_what_needs_a_cookie(library: str, run: Run) -> None:
    """examples/login.py sends the hidden field and the password, keeps the cookie and reads every desk."""
    code, _, items = run("login", "-a", f"site={library}", LIBRARY_PASSWORD="open sesame")

    assert code == 0
    assert sorted(item["desk"] for item in items) == list(range(1, 9))
    assert all(item["book"] == f"Volume {item['desk']}" for item in items)


def test_login_with_a_wrong_password_reads_nothing(library: str, run: Run) -> None:
    """The site of the example really is closed: without the password there is no item."""
    _, summary, items = run("login", "-a", f"site={library}", LIBRARY_PASSWORD="guessed")

    assert (summary["items"], items) == (0, [])


def test_the_spider_of_the_readme_runs(shop: Child, tmp_path: Path) -> None:
    """What a newcomer copies from README.md takes every product of the shop."""
    [code] = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "my_shop.py").write_text(code.replace("http://127.0.0.1:8000/", shop.url), "utf-8")

    command = [sys.executable, "-m", "gossamer.services.cli", "run", "my_shop.py", *QUICK]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    items = [json.loads(line) for line in (tmp_path / "shop.jsonl").read_text("utf-8").splitlines()]
    assert (done.returncode, len(items)) == (0, PRODUCTS), done.stderr
    assert all(item["name"] and item["price"] for item in items)


def test_no_example_is_left_untried() -> None:
    """A new example needs a test here."""
    tried = {"api", "category", "failures", "login", "shop", "site"}

    assert {path.stem for path in EXAMPLES.glob("*.py")} == tried
