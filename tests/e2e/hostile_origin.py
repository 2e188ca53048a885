"""Sites on loopback that answer as no server should, beside pages that are as they should be.

What a path answers is bytes, said on a connection that stays open, or a misbehaviour, which has the connection for
itself until it ends. Every site has the good pages besides.
"""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from gossamer.testing.contracts.transport import Site, Visit, page, site

Misbehaviour = Callable[[Visit], Awaitable[None]]
Answers = Mapping[str, bytes | Misbehaviour]

OK = b"HTTP/1.1 200 OK\r\n"
HTML = b"Content-Type: text/html"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE = "/hostile"
GOOD = ("/good/1", "/good/2", "/good/3")
NOT_FOUND = page(b"not here", status=b"404 Not Found")


def html(body: str | bytes = "", *fields: bytes) -> bytes:
    """A page as it should be."""
    return page(body.encode() if isinstance(body, str) else body, HTML, *fields)


def titled(path: str) -> str:
    """The title of a good page."""
    return f"Well behaved {path}"


def linking(*hrefs: str) -> bytes:
    """A page of links, as they are written."""
    return html("<title>links</title>" + "".join(f'<a href="{href}">x</a>' for href in hrefs))


def moved(location: str | bytes, status: bytes = b"302 Found") -> bytes:
    """A redirect; the location goes out as it is."""
    there = location.encode() if isinstance(location, str) else location
    return page(b"moved", b"Location: " + there, status=status)


def zipped(body: bytes, *, status: bytes = b"200 OK") -> bytes:
    """A page in gzip."""
    return page(gzip.compress(body), HTML, b"Content-Encoding: gzip", status=status)


@asynccontextmanager
async def hostile_site(
    answers: Answers | bytes | Misbehaviour,
    *,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Site]:
    """A site with the good pages and these answers by path; a single answer is that of `HOSTILE`."""
    given = dict(answers) if isinstance(answers, Mapping) else {HOSTILE: answers}
    good = {path: html(f"<title>{titled(path)}</title>") for path in GOOD}
    async with site(_serving({**good, **given}), host=host, tls=tls) as here:
        yield here


def path_of(head: bytes) -> str:
    """The path and query that a request is for; a proxy is told more, which is left out here."""
    target = head.split(b" ", 2)[1].decode("latin-1")
    return "/" + target.split("/", 3)[3] if target.startswith("http://") else target


def asked(here: Site) -> Counter[str]:
    """How often each path was asked for."""
    return Counter(map(path_of, here.requests))


def head_of(here: Site, path: str) -> bytes:
    """The head of the last request for this path."""
    return next(head for head in reversed(here.requests) if path_of(head) == path)


def _serving(answers: Answers) -> Misbehaviour:
    async def serve(visit: Visit) -> None:
        while head := await visit.request():
            answer = answers.get(path_of(head), NOT_FOUND)
            if not isinstance(answer, bytes):
                await answer(visit)
                return
            await visit.say(answer)

    return serve


# The misbehaviours


def hangs_up(said: bytes = b"") -> Misbehaviour:
    """Says this much and closes the connection."""

    async def behave(visit: Visit) -> None:
        await visit.say(said)

    return behave


def resets(said: bytes = b"") -> Misbehaviour:
    """Says this much and breaks the connection."""

    async def behave(visit: Visit) -> None:
        await visit.say(said)
        visit.reset()

    return behave


def goes_silent(said: bytes = b"") -> Misbehaviour:
    """Says this much and nothing more, for ever."""

    async def behave(visit: Visit) -> None:
        await visit.say(said)
        await visit.left()

    return behave


def goes_on(said: bytes, for_ever: bytes, pause: float = 0.0) -> Misbehaviour:
    """Says the first part once and the second for ever."""

    async def behave(visit: Visit) -> None:
        await visit.say(said)
        while True:
            await visit.say(for_ever)
            await asyncio.sleep(pause)

    return behave


def linking_home(*hrefs: str) -> Misbehaviour:
    """A page of links in which HOST and PORT stand for those of its own site."""

    async def behave(visit: Visit) -> None:
        port = str(visit.site.port)
        named = (href.replace("HOST", f"{visit.site.host}:{port}") for href in hrefs)
        await visit.say(linking(*(href.replace("PORT", port) for href in named)))

    return behave


def in_turn(*answers: bytes) -> Misbehaviour:
    """Another answer to each request, the last one again and again; each on a connection of its own."""
    left = list(answers)

    async def behave(visit: Visit) -> None:
        await visit.say(left.pop(0) if len(left) > 1 else left[0])

    return behave


def in_pieces(said: bytes, size: int) -> Misbehaviour:
    """Says this in chunks of so many bytes, each in a packet of its own."""

    async def behave(visit: Visit) -> None:
        await visit.say(CHUNKED.replace(b"\r\n\r\n", b"\r\n" + HTML + b"\r\n\r\n"))
        for start in range(0, len(said), size):
            piece = said[start : start + size]
            await visit.say(b"%x\r\n%s\r\n" % (len(piece), piece))
            await asyncio.sleep(0)
        await visit.say(b"0\r\n\r\n")

    return behave
