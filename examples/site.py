"""A small library with a JSON interface and a reading room behind a login, for `api.py` and `login.py`.

    python examples/site.py --port 8001

It serves on this machine only, says where in one line of JSON, and ends with Ctrl-C.
"""

import argparse
import json
import secrets
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BOOKS = [{"id": n, "title": f"Volume {n}", "year": 1900 + n * 7 % 120} for n in range(1, 46)]
PER_PAGE = 10
READER = {"name": "reader", "password": "open sesame"}
TOKEN = secrets.token_hex(8)  # hidden in the form: a login without it is refused
SESSION = secrets.token_hex(8)


class Library(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/api/books":
            self.books(int(parse_qs(url.query).get("page", ["1"])[0]))
        elif url.path == "/login":
            self.html(
                f'<h1>Login</h1><form method="post" action="/login"><input type="hidden" name="token" value="{TOKEN}">'
                '<input name="name"><input name="password" type="password"></form>'
            )
        elif url.path.startswith("/room/"):
            self.room(url.path)
        else:
            self.html('<h1>Library</h1><a href="/room/">Reading room</a>', 200 if url.path == "/" else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/search":
            wanted = json.loads(body)
            self.json({"books": [book for book in BOOKS if book["year"] >= wanted["since"]]})
            return
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if form == {**READER, "token": TOKEN}:
            self.moved("/room/", f"session={SESSION}; Path=/; HttpOnly")
        else:
            self.html("<h1>Wrong name or password</h1>", 403)

    def books(self, number):
        shown = BOOKS[(number - 1) * PER_PAGE : number * PER_PAGE]
        last = number * PER_PAGE >= len(BOOKS)
        self.json({"books": shown, "next": None if last else f"/api/books?page={number + 1}"})

    def room(self, path):
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        if cookie is None or cookie.value != SESSION:
            self.moved("/login")
        elif path == "/room/":
            self.html("<h1>Reading room</h1>" + "".join(f'<a href="/room/{n}">{n}</a> ' for n in range(1, 9)))
        else:
            self.html(f'<h1>Desk {path.removeprefix("/room/")}</h1><p class="book">Volume {path[6:]}</p>')

    def json(self, value):
        self.answer(200, json.dumps(value), "application/json")

    def html(self, text, status=200):
        self.answer(status, f"<!doctype html><title>Library</title>{text}", "text/html; charset=utf-8")

    def moved(self, where, cookie=None):
        self.answer(303, "", "text/plain", {"Location": where, **({"Set-Cookie": cookie} if cookie else {})})

    def answer(self, status, text, kind, headers=None):
        body = text.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing: the crawler tells what it got."""


def main():
    parser = argparse.ArgumentParser(description="Serve the library of the examples on this machine.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Library)
    port = server.server_address[1]
    print(json.dumps({"url": f"http://127.0.0.1:{port}/", "port": port}), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
