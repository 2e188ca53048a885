"""Pages behind a login: read the form, send it, go on with the cookie.

    python examples/site.py --port 8001
    LIBRARY_PASSWORD="open sesame" gossamer run examples/login.py --allow 127.0.0.1

Cookies live in the memory of the worker and are not kept with the crawl. So the login is not a page like the others: with
`dedupe=False` it is asked for again whenever this command is started. Arguments (`-a`) are part of the task and are stored with
it; a password comes from the environment instead.
"""

import os

from gossamer import Page, Request, Spider


def start():
    yield Request(f"{room.args.site}/login", label="login", priority=100, dedupe=False)


room = Spider("room", start=start, args={"site": "http://127.0.0.1:8001", "name": "reader"})


@room.page(label="login")
def login(page: Page):
    form = page.css("form")
    password = os.environ["LIBRARY_PASSWORD"]
    fields = {
        "token": form.css("input[name=token]").attr("value"),
        "name": room.args.name,
        "password": password,
    }
    yield Request.form(page.join(form.attr("action")), fields, label="desks", dedupe=False, priority=100)


@room.page(label="desks")
def desks(page: Page):
    yield page.follow("a")


@room.page("/room/{number:int}")
def desk(page: Page, number: int):
    yield {"desk": number, "book": page.css(".book").text}
