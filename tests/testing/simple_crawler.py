"""A crawler of the plainest kind: one request at a time, the standard library only, nothing of Gossamer's own.

It exists to check that the served web and its oracle agree; it takes URLs in random order, because the truth about
a known web must not depend on the order.
"""

from __future__ import annotations

import asyncio
import random
import re
import urllib.robotparser
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit

HOPS = 10
ATTEMPTS = 4


class FetchError(Exception):
    """No answer that could be believed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Reader(HTMLParser):
    """Title, heading and hrefs of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.texts: dict[str, str] = {}
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        if tag == "a":
            self.hrefs.append(dict(attrs)["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag:
            self.texts[self._tag] = self.texts.get(self._tag, "") + data


async def fetch(url: str, *, patience: float = 5.0, cap: int = 10**7, headers: str = "") -> Answer:
    """One visit on a connection of its own."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        raise FetchError("connect") from None
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        writer.write(
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{headers}Connection: close\r\n\r\n".encode()
        )
        async with asyncio.timeout(patience):
            return await read_answer(reader, cap)
    except TimeoutError:
        raise FetchError("timeout_header") from None
    except ConnectionError:
        raise FetchError("reset") from None
    except asyncio.IncompleteReadError as error:
        raise FetchError("incomplete" if error.partial else "reset") from None
    finally:
        writer.close()


async def read_answer(reader: asyncio.StreamReader, cap: int = 10**7, *, has_body: bool = True) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    length = int(headers["content-length"])
    if has_body and length > cap:
        raise FetchError("too_large")
    body = await reader.readexactly(length) if has_body else b""
    return Answer(int(head[0].split()[1]), headers, body)


def resolve(base: str, href: str, charset: str) -> str | None:
    """The URL that a browser would follow, or None if it is not one."""
    joined = urljoin(base, href.strip()).partition("#")[0]
    parts = urlsplit(joined)
    if parts.scheme not in ("http", "https"):
        return None
    query = quote(parts.query, safe="=&%", encoding=charset)
    return f"{parts.scheme}://{parts.netloc}{quote(parts.path or '/', safe='/%')}" + (
        f"?{query}" if query else ""
    )


@dataclass
class SimpleCrawler:
    """Crawls from the seeds within `hosts`; `ended` and `items` say what came of it."""

    hosts: list[str]
    seed: int = 0
    patience: float = 5.0
    cap: int = 10**7
    depth: int | None = None
    ended: dict[str, str] = field(default_factory=dict)
    items: dict[str, dict[str, object]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)

    async def crawl(self, seeds: list[str]) -> None:
        draw = random.Random(self.seed)
        waiting = [(url, 0, 0) for url in seeds]
        known = set(seeds)
        rules = {host: await self._rules(host) for host in self.hosts}
        while waiting:
            url, depth, hops = waiting.pop(draw.randrange(len(waiting)))
            code, links, further = await self._one(url, depth, hops, rules)
            self.ended[url] = code
            for link in links:
                if urlsplit(link).netloc not in self.hosts:
                    self.outside.add(link)
                elif link not in known and (self.depth is None or depth + further <= self.depth):
                    known.add(link)
                    waiting.append((link, depth + further, 0 if further else hops + 1))

    async def _rules(self, host: str) -> urllib.robotparser.RobotFileParser | None:
        for _ in range(ATTEMPTS):
            answer = await fetch(f"http://{host}/robots.txt")
            if answer.status < 500:
                break
        if answer.status == 404:
            return None
        assert answer.status == 200
        parser = urllib.robotparser.RobotFileParser()
        parser.parse(answer.body.decode().splitlines())
        return parser

    async def _one(
        self, url: str, depth: int, hops: int, rules: dict[str, urllib.robotparser.RobotFileParser | None]
    ) -> tuple[str, list[str], int]:
        """The end of one URL, its links, and whether they are one level deeper."""
        parts = urlsplit(url)
        segments = parts.path.strip("/").split("/")
        if len(segments) > 20 or len(parts.query.split("&")) > 20 or max(map(segments.count, segments)) > 2:
            return "SKIPPED(trap)", [], 0
        rule = rules[parts.netloc]
        if rule is not None and not rule.can_fetch("*", url):
            return "SKIPPED(robots)", [], 0
        try:
            answer = await self._patiently(url)
        except FetchError as failure:
            return f"FAILED({failure.code})", [], 0
        if 300 <= answer.status < 400:
            target = urljoin(url, answer.headers["location"])
            if target == url:
                return "FAILED(redirect_loop)", [], 0
            return ("FAILED(redirect_limit)", [], 0) if hops == HOPS else ("DONE(redirected)", [target], 0)
        if answer.status != 200:
            return f"{'FAILED' if answer.status >= 500 else 'DONE'}(http_{answer.status})", [], 0
        return "DONE(ok)", self._read(url, depth, answer), 1

    async def _patiently(self, url: str) -> Answer:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = await fetch(url, patience=self.patience, cap=self.cap)
            except FetchError as failure:
                if attempt == ATTEMPTS or failure.code in ("too_large", "incomplete", "timeout_header"):
                    raise
                continue
            if answer.status < 500 and answer.status != 429:
                return answer
        return answer

    def _read(self, url: str, depth: int, answer: Answer) -> list[str]:
        declared = answer.headers["content-type"] + answer.body[:100].decode("latin-1")
        charset = "gbk" if re.search("charset=.?gbk", declared, re.IGNORECASE) else "utf-8"
        page = Reader(answer.body.decode(charset))
        assert page.texts["h1"] == page.texts["title"]
        self.items[url] = {"url": url, "status": 200, "title": page.texts["title"], "depth": depth}
        links = (resolve(url, href, charset) for href in page.hrefs)
        return [link for link in links if link and link != url]
