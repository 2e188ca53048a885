"""Redis for tests, durable as we ask users to have it: one server, or a master with replicas and sentinels."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from gossamer.testing.servers.process import ServerProcess, free_port, is_open, program, wait_until


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
            str(folder.resolve()),
        ]
        command = [program("redis-server", "redis-server"), *words, *options]
        self.process = ServerProcess(command, folder, f"redis-{self.port}")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> RedisServer:
        self.process.start(self._is_ready)
        return self

    def start_guarded(self, password: str) -> RedisServer:
        """Start a server that wants this password of everybody."""
        self.process.start(lambda: is_open(self.port))
        assert self.ask("AUTH", password) == b"+OK\r\n"
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


class RedisSentinels:
    """A master, its replicas, and three sentinels that promote one of them when the master is gone."""

    name = "mymaster"

    def __init__(self, folder: Path, replicas: int = 2) -> None:
        self.folder = folder
        quick = ("--repl-diskless-sync-delay", "0")
        self.servers = [RedisServer(folder / "redis-0", *quick)]
        more = ("--replicaof", "127.0.0.1", str(self.servers[0].port), *quick)
        self.servers += [RedisServer(folder / f"redis-{n + 1}", *more) for n in range(replicas)]
        self.sentinels = [self._sentinel(n) for n in range(3)]

    @property
    def url(self) -> str:
        nodes = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{nodes}/{self.name}"

    def start(self) -> RedisSentinels:
        for server in (*self.servers, *self.sentinels):
            server.start()
        wanted = len(self.servers) - 1, len(self.sentinels) - 1
        for sentinel in self.sentinels:  # they find each other through the master
            wait_until(lambda one=sentinel: self._knows(one) == wanted, "the sentinels know each other")  # type: ignore[misc]
        wait_until(self.is_in_step, "the replicas have what the master has")
        return self

    def is_in_step(self) -> bool:
        """Whether every replica follows the master: one that does not must not be promoted."""
        return self.master.ask("INFO", "replication").count(b"state=online") == len(self.servers) - 1

    def stop(self) -> None:
        for server in (*self.sentinels, *self.servers):
            server.kill()

    @property
    def master(self) -> RedisServer:
        """Who is master now, as the sentinels say."""
        said = self.sentinels[0].ask("SENTINEL", "get-master-addr-by-name", self.name).split(b"\r\n")
        return next(server for server in self.servers if str(server.port).encode() in said)

    def _knows(self, sentinel: RedisServer) -> tuple[int, int]:
        said = sentinel.ask("SENTINEL", "master", self.name).decode(errors="replace").split("\r\n")
        told = dict(zip(said, said[2:], strict=False))
        return int(told.get("num-slaves", -1)), int(told.get("num-other-sentinels", -1))

    def _sentinel(self, number: int) -> RedisServer:
        folder = self.folder / f"sentinel-{number}"
        folder.mkdir(parents=True)
        port, master = free_port(), self.servers[0].port
        file = folder / "sentinel.conf"
        file.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {self.name} 127.0.0.1 {master} 2\n"
            f"sentinel down-after-milliseconds {self.name} 1000\nsentinel failover-timeout {self.name} 5000\n"
        )
        sentinel = RedisServer(folder, port=port)
        sentinel.process.command = [program("redis-server", "redis-server"), str(file), "--sentinel"]
        return sentinel
