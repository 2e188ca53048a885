"""Which of libcurl's sockets are ready, asked for many at once.

All sockets are gathered in one kernel queue of our own, and the event loop watches only that queue. One wake-up then
serves every ready socket, and none of them has to enter and leave the loop's own set for each request: that halves
the cost of a request against watching each socket on the loop (benchmarks/transport.py).
"""

from __future__ import annotations

import os
import select
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

READ, WRITE = 1, 2
_BATCH = 512
Endpoint = tuple[str, int]
_HAS_EPOLL = hasattr(select, "epoll")

if _HAS_EPOLL:
    _IN, _OUT, _ONCE = select.EPOLLIN, select.EPOLLOUT, select.EPOLLONESHOT
    _RESTING = _IN | _ONCE
    _MASKS = (0, _IN | _ONCE, _OUT | _ONCE, _IN | _OUT | _ONCE)


def _events(mask: int) -> int:
    """What libcurl shall look at; an error or a hang-up counts as readable."""
    return (READ if mask & ~_OUT else 0) | (WRITE if mask & _OUT else 0)


def _unasked(fd: int) -> Endpoint | None:
    """The local end of a connection if there is something to read on it; its end is no news to libcurl."""
    try:
        connection = socket.socket(fileno=fd)
    except OSError:  # closed here; a forked child still has it
        return None
    try:
        if connection.type == socket.SOCK_STREAM and connection.recv(
            1, socket.MSG_PEEK | socket.MSG_DONTWAIT
        ):
            host, port = connection.getsockname()[:2]
            return host, port
    except OSError:  # it broke, and libcurl will see that
        pass
    finally:
        connection.detach()
    return None


class Readiness(Protocol):
    """A set of watched sockets with a descriptor that becomes readable when one of them is ready."""

    spoiled: set[Endpoint]
    """Local ends of pooled connections on which the server spoke unasked: what it said must answer no request."""

    def fileno(self) -> int: ...

    def watch(self, fd: int, events: int) -> None:
        """Watch for READ, WRITE or both; replaces what was watched for."""
        ...

    def rest(self, fd: int) -> None:
        """Stop watching. Comes before libcurl closes the socket or puts it into its pool."""
        ...

    def serve(self, act: Callable[[int, int], object]) -> None:
        """Call `act` with descriptor and READ | WRITE for each socket that is ready now, without waiting."""
        ...

    def close(self) -> None: ...


class EpollReadiness:
    """Readiness on Linux.

    A resting socket stays registered, since most are watched again soon, and the kernel forgets closed ones by
    itself: `modify` failing means "new". Registration is one-shot, so a server that closes an idle connection or
    speaks on it, or a forked child that holds a closed one open, wakes us once and not for ever.
    """

    def __init__(self) -> None:
        self.spoiled: set[Endpoint] = set()
        self._spoiled_by: dict[int, Endpoint] = {}
        self._queue = select.epoll()
        self._watched: dict[int, int] = {}

    def fileno(self) -> int:
        return self._queue.fileno()

    def watch(self, fd: int, events: int) -> None:
        mask = _MASKS[events]
        if fd in self._watched:
            try:
                self._queue.modify(fd, mask)
            except FileNotFoundError:  # another socket has got the number of a closed one
                self._enter(fd, mask)
        else:
            self._enter(fd, mask)
        self._watched[fd] = mask

    def rest(self, fd: int) -> None:
        if self._watched.get(fd):
            self._watched[fd] = 0
            with suppress(OSError):  # closed already
                self._queue.modify(fd, _RESTING)

    def serve(self, act: Callable[[int, int], object]) -> None:
        watched = self._watched
        for fd, mask in self._queue.poll(0, _BATCH):
            if watched.get(fd):
                act(fd, READ if mask == _IN else _events(mask))
                if again := watched[fd]:
                    self._queue.modify(fd, again)
            elif end := _unasked(fd):
                self.spoiled.add(end)
                self._spoiled_by[fd] = end

    def close(self) -> None:
        self._queue.close()

    def _enter(self, fd: int, mask: int) -> None:
        os.set_inheritable(fd, False)
        self._queue.register(fd, mask)
        if self._spoiled_by and (end := self._spoiled_by.pop(fd, None)):
            self.spoiled.discard(end)  # that connection is gone


class SelectorReadiness:
    """Readiness where there is no epoll, by the standard library's best selector. It never watches idle sockets."""

    def __init__(self) -> None:
        self.spoiled: set[Endpoint] = set()
        self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        return int(self._selector.fileno())  # epoll, kqueue and devpoll have it

    def watch(self, fd: int, events: int) -> None:
        try:
            self._selector.modify(fd, events)
        except KeyError:
            os.set_inheritable(fd, False)
            self._selector.register(fd, events)

    def rest(self, fd: int) -> None:
        with suppress(KeyError):  # it never had to wait
            self._selector.unregister(fd)

    def serve(self, act: Callable[[int, int], object]) -> None:
        for key, events in self._selector.select(0):
            if key.fd in self._selector.get_map():  # an earlier call may have closed it
                act(key.fd, events)

    def close(self) -> None:
        self._selector.close()


def open_readiness() -> Readiness:
    return EpollReadiness() if _HAS_EPOLL else SelectorReadiness()
