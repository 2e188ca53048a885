"""Fault tools: a crawl that is killed between two of its steps, or that carries a planted mistake.

    FAULT_CRASH_AT=settle.before_commit:3 python -m gossamer.testing.faults crawl http://127.0.0.1:8000/ ...
    FAULT_CRASH_AT=clock:0.25             python -m gossamer.testing.faults run books.py
    FAULT_PLANT=planted.py:no_token_check python -m gossamer.testing.faults crawl ...
    python -m gossamer.testing.faults --points

What follows is the ordinary command line, in this very process. At the n-th passage of the point (or so many seconds after the
frontier was opened) the process ends itself with SIGKILL: nothing is flushed, no `finally` runs. The product does not know of
it: its functions are wrapped from outside, so what is shown here holds for the code that people run.

A *plant* is a function of a file of yours that changes the product before it starts. A check that still passes with the mistake
in place checks nothing. With `--workers N` the plant works in all processes; the point in the supervisor or, with
FAULT_CRASH_IN=worker, once in the first child.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

CRASH_AT: Final = "FAULT_CRASH_AT"
CRASH_IN: Final = "FAULT_CRASH_IN"
PLANT: Final = "FAULT_PLANT"

_SQLITE = "gossamer.backends.sqlite"
_FRONTIER = f"{_SQLITE}.frontier:SqliteFrontier"
_SETTLING = f"{_SQLITE}.settling"
_BLOBS = "gossamer.backends.files.blobs"
_JSONL = "gossamer.backends.files.jsonl:JsonlSink"


@dataclass(frozen=True)
class Point:
    """A place between two steps: on one side of a function of the product."""

    place: str
    """`module:name` or `module:Class.name`, where the product looks the function up."""
    after: bool = True
    counts: Callable[..., bool] | None = None
    """Given the arguments of the call: whether it is a passage. None: every call is."""


class _Thread(threading.local):
    settling = False  # whether this thread is in the transaction of a settle with outcomes


_this = _Thread()


def _ends_a_settle(_: object) -> bool:
    was, _this.settling = _this.settling, False
    return was


def _has_outcomes(_: object, __: str, outcomes: Sequence[object], *___: object) -> bool:
    return bool(outcomes)


def _settles_outcomes(_: object, __: object, ___: str, outcomes: Sequence[object], *____: object) -> bool:
    return bool(outcomes)


POINTS: Final[dict[str, Point]] = {
    # The beginning
    "task.opened": Point(f"{_FRONTIER}.open_task"),
    "seeds.before_push": Point("gossamer.crawling.feeding:Feeder._push", after=False),
    "seeds.after_push": Point("gossamer.crawling.feeding:Feeder._push"),
    "seeds.all_in": Point("gossamer.crawling.feeding:Feeder.run"),
    "session.opened": Point(f"{_FRONTIER}.open_session"),
    "reap.in_transaction": Point(f"{_SQLITE}.sessions:reap"),
    # A visit
    "lease.in_transaction": Point(f"{_SQLITE}.leasing:lease"),
    "fetch.before": Point("gossamer.backends.curl.transport:CurlTransport.send", after=False),
    "fetch.after": Point("gossamer.backends.curl.transport:CurlTransport.send"),
    "handler.before": Point("gossamer.crawling.handling:Handling.handle", after=False),
    "handler.after": Point("gossamer.crawling.handling:Handling.handle"),
    # The commit
    "blobs.before": Point(f"{_BLOBS}:FileBlobs.put_many", after=False),
    "blobs.written": Point(f"{_BLOBS}:_written"),
    "blobs.named": Point(f"{_BLOBS}:FileBlobs._sync", after=False),
    "blobs.after": Point(f"{_BLOBS}:FileBlobs.put_many"),
    "settle.before": Point(f"{_FRONTIER}.settle", after=False, counts=_has_outcomes),
    "settle.begun": Point(f"{_SQLITE}.frontier:settle", after=False, counts=_settles_outcomes),
    "settle.tokens_gone": Point(f"{_SETTLING}:Settling.write", after=False),
    "settle.before_links": Point(f"{_SETTLING}:push", after=False),
    "settle.after_links": Point(f"{_SETTLING}:push"),
    "settle.after_items": Point(f"{_SETTLING}:Settling.write_effects"),
    "settle.before_lease": Point(f"{_SETTLING}:Settling.run"),
    "settle.before_commit": Point(f"{_SQLITE}.ledger:Ledger.write", counts=_ends_a_settle),
    "settle.after_commit": Point(f"{_FRONTIER}.settle", counts=_has_outcomes),
    "settle.acknowledged": Point(
        "gossamer.crawling.worker:Worker._settled", counts=lambda _, outcomes, __: bool(outcomes)
    ),
    # The sinks
    "sink.before_write": Point(f"{_JSONL}.write", after=False),
    "sink.half_written": Point("os:pwrite", after=False),
    "sink.after_write": Point(f"{_JSONL}.write"),
    "advance.in_transaction": Point(f"{_SQLITE}.items:advance"),
    "advance.after": Point(f"{_FRONTIER}.advance"),
    # The end
    "session.before_close": Point(f"{_FRONTIER}.close_session", after=False),
    "end.before_drain": Point("gossamer.crawling.followers:SinkFollower.drain", after=False),
    "end.after_drain": Point("gossamer.crawling.followers:SinkFollower.drain"),
}
"""The steps of a crawl in their order; the commit's are DESIGN 3, steps 7 and 8."""

AT_THE_END: Final = ("session.before_close", "end.before_drain", "end.after_drain")
"""Points that are passed once a crawl has ended, not while it runs."""


def die() -> NoReturn:
    """End this process as a power cut would: at once, and without a word."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal may reach another thread first
    raise AssertionError("SIGKILL was not obeyed")


class Countdown:
    """Called at every passage; does what it is for at the n-th."""

    def __init__(self, passages: int, act: Callable[[], None] = die) -> None:
        self._left = passages
        self._act = act
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._left -= 1
            due = self._left == 0
        if due:
            self._act()


def wrap(place: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace the function at `module:name` by what `change` makes of it."""
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, name, change(getattr(owner, name)))


def crash_at(point: str, passages: int = 1, act: Callable[[], None] = die) -> None:
    """From now on this process ends at the n-th passage of `point`."""
    if point not in POINTS:
        raise ValueError(f"there is no point {point!r}; there are {', '.join(POINTS)}")
    if point == "sink.half_written":
        return _crash_in_the_middle_of_a_write(passages, act)
    if point == "settle.before_commit":
        wrap(f"{_SQLITE}.frontier:settle", _marking)
    spot, count = POINTS[point], Countdown(passages, act)
    wrap(spot.place, lambda function: _beside(function, spot, count))
    return None


def crash_after(seconds: float, act: Callable[[], None] = die) -> None:
    """This process ends so long after it has opened a frontier."""

    def wait() -> None:
        time.sleep(seconds)
        act()

    begin = Countdown(1, lambda: threading.Thread(target=wait, daemon=True).start())
    spot = Point(f"{_FRONTIER}.__aenter__")
    wrap(spot.place, lambda function: _beside(function, spot, begin))


def _beside(function: Callable[..., Any], spot: Point, count: Callable[[], None]) -> Callable[..., Any]:
    """The function, with a passage counted before or after it."""

    def passed(*arguments: Any, **named: Any) -> None:
        if spot.counts is None or spot.counts(*arguments, **named):
            count()

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*arguments: Any, **named: Any) -> Any:
            if not spot.after:
                passed(*arguments, **named)
            answer = await function(*arguments, **named)
            if spot.after:
                passed(*arguments, **named)
            return answer

        return later

    @functools.wraps(function)
    def now(*arguments: Any, **named: Any) -> Any:
        if not spot.after:
            passed(*arguments, **named)
        answer = function(*arguments, **named)
        if spot.after:
            passed(*arguments, **named)
        return answer

    return now


def _marking(function: Callable[..., Any]) -> Callable[..., Any]:
    """The settle of the store; its thread is known to be settling until the next transaction begins."""

    @functools.wraps(function)
    def settle(ledger: object, ids: object, session: str, outcomes: Sequence[object], *rest: Any) -> Any:
        _this.settling = False
        answer = function(ledger, ids, session, outcomes, *rest)
        _this.settling = bool(outcomes)
        return answer

    return settle


def _crash_in_the_middle_of_a_write(passages: int, act: Callable[[], None]) -> None:
    """Half of the bytes reach the file, then it is over."""
    write = os.pwrite

    torn = threading.Event()
    count = Countdown(passages, torn.set)

    def half(file: int, data: Any, place: int) -> int:
        count()
        if torn.is_set():
            write(file, bytes(data)[: max(1, len(data) // 2)], place)
            act()
        return write(file, data, place)

    os.pwrite = half


def _plant(where: str) -> None:
    file, _, function = where.rpartition(":")
    runpy.run_path(file)[function]()


def install(*, worker: bool = False) -> None:
    """Do what the environment asks for, in this process."""
    if where := os.environ.get(PLANT):
        _plant(where)
    if not worker:
        _start_children_through_this(
            os.environ.get(CRASH_AT) if os.environ.get(CRASH_IN) == "worker" else None
        )
    if (wanted := os.environ.get(CRASH_AT)) and (worker or os.environ.get(CRASH_IN) != "worker"):
        point, _, number = wanted.partition(":")
        if point == "clock":
            crash_after(float(number))
        else:
            crash_at(point, int(number or 1))


def _start_children_through_this(first: str | None) -> None:
    """Children of a crew carry the same plant; only the first one is given the point at which to die."""
    crew: Any = importlib.import_module("gossamer.services.crew")
    start, left = crew.asyncio.create_subprocess_exec, [first]

    class Asyncio:
        """The module as the crew sees it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("asyncio"), name)

        async def create_subprocess_exec(self, program: str, *words: str, **options: Any) -> Any:
            changed = ["gossamer.testing.faults", "--worker"]
            words = tuple(
                new for word in words for new in (changed if word == "gossamer.services.crew" else [word])
            )
            given = options.pop("env", None) or os.environ
            environment = {name: value for name, value in given.items() if name != CRASH_AT}
            if (at := left[0]) is not None:
                environment[CRASH_AT], left[0] = at, None
            return await start(program, *words, env=environment, **options)

    crew.asyncio = Asyncio()


def main(argv: Sequence[str]) -> int:
    """The product's command line under faults."""
    if argv[:1] == ["--points"]:
        print("\n".join(POINTS))
        return 0
    worker = argv[:1] == ["--worker"]
    install(worker=worker)
    start = importlib.import_module("gossamer.services.crew" if worker else "gossamer.services.cli")
    code: int = start.main(list(argv[1:] if worker else argv))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
