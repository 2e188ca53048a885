"""A Redis server for tests, durable as we ask users to have it."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from gossamer.testing.servers.process import ServerProcess, free_port, program


class RedisServer:
    """One redis-server. `start` after `kill` or `stop` goes on with what its append-only file holds."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        self.port = port or free_port()
        words = [
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--save",
            "",
            "--appendonly",
            "yes",
            "--dir",
            str(folder),
        ]
        command = [program("redis-server", "redis-server"), *words, *options]
        self.process = ServerProcess(command, folder, f"redis-{self.port}")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> RedisServer:
        self.process.start(self._is_ready)
        return self

    def kill(self) -> None:
        self.process.kill()

    def stop(self) -> None:
        self.process.stop()

    def freeze(self) -> None:
        self.process.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send(signal.SIGCONT)

    def ask(self, *words: str) -> bytes:
        """The first bytes of the answer to one command, for tests that look at the server beside the product."""
        command = b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%b\r\n" % (len(word.encode()), word.encode()) for word in words
        )
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(command)
            return connection.recv(65536)

    def _is_ready(self) -> bool:
        try:
            return self.ask("PING").startswith(b"+PONG")
        except OSError:
            return False
