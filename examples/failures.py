"""What could not be got, as items: a list of the broken links of a site, each with the page that links to it.

    python -m gossamer.testing.web shop --port 8000
    gossamer run examples/failures.py -a start=http://127.0.0.1:8000/ --allow 127.0.0.1

A 404 is an answer, so it ends DONE, and a handler sees it where it asks for any status. What could not be got in spite of
all attempts ends FAILED, and `@spider.failed` is told.
"""

from gossamer import Failure, Page, Spider

links = Spider("links", start=lambda: links.args.start, args={"start": "http://127.0.0.1:8000/"})


@links.page(any_status=True)
def page(page: Page):
    if not page.ok:
        yield {"url": page.url, "why": f"http_{page.status}", "linked_from": page.meta.get("from")}
        return
    yield page.follow(meta={"from": page.url})


@links.failed
def failed(failure: Failure):
    yield {"url": failure.url, "why": failure.code, "linked_from": failure.meta.get("from")}
