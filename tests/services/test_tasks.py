"""`tasks`, the commands that steer, and `explain`, against the frontier in memory behind the real command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.model.host import HostOrder, RobotsOrder, Wish
from gossamer.model.record import Kind, Link, Outcome, Verdict
from gossamer.model.task import Command, TaskSpec
from gossamer.model.url import canonical, fingerprint, fingerprint_of_key, host_key
from gossamer.services import cli, meanings
from gossamer.testing.fake_clock import FakeClock

Run = Callable[..., tuple[int, str, str]]
SEED = "https://a.example/"
RUN = {"books"}
"""Tasks that a process runs."""
RULES = b"User-agent: *\nDisallow: /secret\n"


def link(url: str, depth: int = 0) -> Link:
    url = canonical(url)
    return Link(fingerprint("GET", url), url, host_key(url), depth=depth)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def frontier(clock: FakeClock) -> MemoryFrontier:
    return MemoryFrontier(clock)


@pytest.fixture
def gossamer(
    frontier: MemoryFrontier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs the real entry point over this frontier, in a folder that has a state directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gossamer").mkdir()
    wiring = ModuleType("gossamer.services.wiring")

    @asynccontextmanager
    async def open_frontier(state: Path) -> AsyncIterator[MemoryFrontier]:
        assert state == Path(".gossamer")
        yield frontier

    wiring.open_frontier = open_frontier  # type: ignore[attr-defined]
    wiring.runner = lambda _state, task: "7" if task in RUN else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, wiring.__name__, wiring)
    monkeypatch.setattr("gossamer.services.wiring", wiring, raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(words)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def crawled(frontier: MemoryFrontier, name: str = "books", **settings: object) -> None:
    """A task whose seed linked to four pages: one got, one failed, one forbidden, one that still waits."""

    async def crawl() -> None:
        document = {"settings": {"allow": ["a.example"], **settings}}
        await frontier.open_task(TaskSpec(name=name, settings=msgspec.json.encode(document), wish=Wish()))
        await frontier.push(name, [link(SEED)])
        session = await frontier.open_session("test")
        pages = [link(SEED + path, 1) for path in ("ok", "broken", "secret", "later")]
        ends = {
            SEED: ("ok", Verdict.DONE, pages),
            SEED + "ok": ("http_404", Verdict.DONE, []),
            SEED + "broken": ("http_503", Verdict.FAILED, []),
            SEED + "secret": ("robots", Verdict.SKIPPED, []),
        }
        for _ in range(10):
            leases = await frontier.lease(session, {name: 4})
            for grant in leases.grants:
                if grant.kind is Kind.ROBOTS:
                    order = HostOrder(robots=RobotsOrder(RULES, 3600.0))
                    outcome = Outcome(grant.number, Verdict.DONE, "ok", host=order, sent_ago=0.0)
                elif grant.url in ends:
                    code, verdict, links = ends[grant.url]
                    outcome = Outcome(grant.number, verdict, code, links=list(links), sent_ago=0.0)
                else:
                    outcome = Outcome(grant.number, Verdict.RETRY, "reset", delay=60.0, sent_ago=0.0)
                await frontier.settle(session, [outcome], {})
        await frontier.control(name, Command.SEEDED)
        await frontier.close_session(session)

    asyncio.run(crawl())


def state_of(frontier: MemoryFrontier, name: str = "books") -> str:
    (view,) = asyncio.run(frontier.tasks([name]))
    return view.state.value


def test_tasks_are_listed_with_their_figures(gossamer: Run, frontier: MemoryFrontier, clock: FakeClock):
    """One aligned line a task: state, pages, failed, skipped, waiting, age."""
    crawled(frontier)
    clock.advance(75)
    code, out, _ = gossamer("tasks")
    head, row = out.splitlines()
    assert code == 0
    assert " ".join(head.split()) == "TASK STATE PAGES ITEMS FAILED SKIPPED WAITING STARTED ENDED"
    assert row.split() == ["books", "RUNNING", "2", "0", "1", "1", "1", "1m", "ago", "–"]


def test_tasks_are_listed_for_programs(gossamer: Run, frontier: MemoryFrontier):
    """With --json each task is an object with numbers."""
    crawled(frontier)
    (row,) = json.loads(gossamer("tasks", "--json")[1])
    facts = [row[name] for name in ("task", "state", "pages", "failed", "pending")]
    assert facts == ["books", "RUNNING", 2, 1, 1]


def test_one_task_is_summed_up(gossamer: Run, frontier: MemoryFrontier):
    """`gossamer tasks TASK` shows figures, causes with examples and what was left out, also while it runs."""
    crawled(frontier)
    asyncio.run(_count(frontier))
    code, out, _ = gossamer("tasks", "books")
    assert code == 0
    assert out.splitlines()[0] == "books  RUNNING  started just now"
    for said in (
        "  Pages      2  0 B\n",
        "  Skipped    1  robots 1\n",
        "  Failed     1\n             1 http_503\n",
        "  Dropped    2\n             2 no price\n               {'name': 'x'}\n",
        "  Left out   4 links  offsite 4\n",
        "  Counted    seen 5\n",
    ):
        assert said in out
    told = json.loads(gossamer("tasks", "books", "--json")[1])
    assert (told["pages"], told["counts"], told["dropped"]) == (2, {"seen": 5}, {"no price": 2})
    assert told["refused"] == {"offsite": 4}


async def _count(frontier: MemoryFrontier) -> None:
    """One more page, settled with counters and an example as the engine settles them."""
    session = await frontier.open_session("test")
    await frontier.push("books", [link("https://b.example/")])
    frontier_counts = {"own:seen": 5, "dropped:no price": 2, "refused:offsite": 4}
    for kind in (Kind.ROBOTS, Kind.PAGE):
        (grant,) = (await frontier.lease(session, {"books": 1})).grants
        assert grant.kind is kind
        outcome = Outcome(grant.number, Verdict.RETRY, "reset", delay=60.0, sent_ago=0.0)
        if kind is Kind.ROBOTS:
            order = HostOrder(robots=RobotsOrder(RULES, 3600.0))
            outcome = Outcome(grant.number, Verdict.DONE, "ok", host=order, sent_ago=0.0)
        else:
            outcome.counts = frontier_counts
            outcome.samples = [("dropped:no price", " {'name': 'x'}")]
        await frontier.settle(session, [outcome], {})
    await frontier.close_session(session)


def test_an_empty_store_says_how_to_begin(gossamer: Run):
    """No task is no error; stdout stays empty for programs."""
    code, out, err = gossamer("tasks")
    assert (code, out) == (0, "")
    assert "gossamer crawl URL" in err
    assert gossamer("tasks", "--json")[1] == "[]\n"


def test_pause_resume_and_cancel_change_the_state(gossamer: Run, frontier: MemoryFrontier):
    """Each command is obeyed by the frontier and says what it means."""
    crawled(frontier)
    assert "gossamer resume books" in gossamer("pause", "books")[1]
    assert state_of(frontier) == "PAUSED"
    assert gossamer("resume", "books")[0] == 0
    assert state_of(frontier) == "RUNNING"
    assert "stays" in gossamer("cancel", "books")[1]
    assert state_of(frontier) == "CANCELLED"


def test_a_command_that_does_not_fit_changes_nothing(gossamer: Run, frontier: MemoryFrontier):
    """Pausing a task that has ended is a wrong command, not a failed crawl."""
    crawled(frontier)
    gossamer("cancel", "books")
    code, out, err = gossamer("pause", "books")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert state_of(frontier) == "CANCELLED"


def test_a_misspelt_task_gets_the_nearest(gossamer: Run, frontier: MemoryFrontier):
    """The error holds the name that was probably meant."""
    crawled(frontier)
    code, _, err = gossamer("pause", "bokos")
    assert code == 1
    assert "no task 'bokos'" in err
    assert err.splitlines()[-1].endswith("books")


def test_retry_failed_counts_what_it_wakes(gossamer: Run, frontier: MemoryFrontier):
    """The failed page waits again after the command."""
    crawled(frontier)
    assert "1 failed page waits" in gossamer("retry-failed", "books")[1]
    asyncio.run(_tick(frontier))
    assert asyncio.run(frontier.counters("books"))["failed"] == 0


async def _tick(frontier: MemoryFrontier) -> None:
    session = await frontier.open_session("test")
    await frontier.lease(session, {"books": 0})
    await frontier.close_session(session)


def test_retry_failed_leaves_a_clean_task_alone(gossamer: Run, frontier: MemoryFrontier):
    """A task without failures is not run again for nothing."""
    asyncio.run(frontier.open_task(TaskSpec(name="clean")))
    asyncio.run(frontier.control("clean", Command.SEEDED))
    assert "No page of clean has failed" in gossamer("retry-failed", "clean")[1]
    assert state_of(frontier, "clean") == "COMPLETED"


class TestExplain:
    """The life of a URL, in words."""

    @pytest.fixture(autouse=True)
    def crawl(self, frontier: MemoryFrontier) -> None:
        crawled(frontier, depth=2)

    def test_a_page_that_was_got(self, gossamer: Run):
        """State, meaning, where it was found and how deep."""
        code, out, _ = gossamer("explain", "books", "HTTPS://A.example:443/ok#part")
        assert code == 0
        assert out.splitlines()[0] == "https://a.example/ok"
        assert "State      DONE (http_404): the server answered 404 Not Found" in out
        assert "Found on   https://a.example/" in out
        assert "Depth      1 link from a seed" in out
        assert "a.example:443" in out
        assert "Robots   allows this URL" in out

    def test_a_seed(self, gossamer: Run):
        """A seed was found nowhere."""
        out = gossamer("explain", "books", SEED)[1]
        assert "it is where the task started" in out
        assert "Depth      a seed" in out

    def test_a_page_that_failed_or_was_skipped(self, gossamer: Run):
        """The code is told in words."""
        assert (
            "FAILED (http_503): the server answered 503 Service Unavailable"
            in gossamer("explain", "books", SEED + "broken")[1]
        )
        out = gossamer("explain", "books", SEED + "secret")[1]
        assert "SKIPPED (robots): the host's robots.txt forbids it" in out
        assert "Robots   forbids this URL" in out

    def test_a_page_that_waits_says_for_what(self, gossamer: Run, clock: FakeClock):
        """A pending page names the first thing that keeps it: its own retry, then the task's state."""
        out = gossamer("explain", "books", SEED + "later")[1]
        assert "PENDING" in out
        assert "next attempt, due in 1m 00s" in out
        assert "Attempts   repeated 1 time" in out
        gossamer("pause", "books")
        assert "because the task is PAUSED" in gossamer("explain", "books", SEED + "later")[1]

    @pytest.mark.parametrize(
        ("url", "code"),
        [
            ("https://elsewhere.example/", "offsite"),
            (SEED + "secret/2", "robots"),
            (SEED + "a/b/" * 12, "trap_segments"),
            (SEED + "a/b/a/b/a/b", "trap_repeat"),
            (SEED + "?" + "&".join(f"p{n}=1" for n in range(30)), "trap_parameters"),
        ],
    )
    def test_a_url_that_a_rule_would_refuse(self, gossamer: Run, url: str, code: str):
        """For a URL that was never pushed the rule is worked out and told in words."""
        out = gossamer("explain", "books", url)[1]
        assert "this task has never met this URL" in out
        assert f"Refused    {code}: {meanings.meaning(code)}" in out

    def test_a_url_that_nobody_linked(self, gossamer: Run):
        """Where no rule is against it, the answer says what is left."""
        out = gossamer("explain", "books", SEED + "unknown")[1]
        assert "neither scope, trap defence nor" in out
        assert "unless it lies deeper than 2 links" in out
        assert "1 page may still link to it" in out
        gossamer("cancel", "books")
        assert "no page of the task links to it" in gossamer("explain", "books", SEED + "unknown")[1]

    def test_for_programs(self, gossamer: Run):
        """--json has the same facts as names."""
        known = json.loads(gossamer("explain", "books", SEED + "broken", "--json")[1])
        assert (known["state"], known["code"], known["found_on"]) == ("FAILED", "http_503", SEED)
        assert known["host"]["robots_known"] is True
        unknown = json.loads(gossamer("explain", "books", "https://elsewhere.example/", "--json")[1])
        assert (unknown["state"], unknown["refused"], "host" in unknown) == (None, "offsite", False)

    def test_what_is_no_url_is_wrong_usage(self, gossamer: Run):
        """The URL is checked by the same parser as the crawl's."""
        assert gossamer("explain", "books", "not a url")[0] == 1


def push(frontier: MemoryFrontier, *links: Link) -> None:
    asyncio.run(frontier.push("books", links))


def test_explain_finds_what_was_asked_for_with_a_key(gossamer: Run, frontier: MemoryFrontier):
    """A record with an own key is found by it, whatever URL is typed beside it; by its URL alone it is not."""
    crawled(frontier)
    url = SEED + "search?page=7"
    push(frontier, Link(fingerprint_of_key("page 7"), url, host_key(url), own_key=True))
    out = gossamer("explain", "books", url)[1]
    assert "never met this URL" in out
    assert "Else try   --key KEY" in out
    out = gossamer("explain", "books", SEED, "--key", "page 7")[1]
    assert (out.splitlines()[0], "PENDING" in out) == (url, True)
    assert "never met this URL with this key" in gossamer("explain", "books", url, "--key", "page 8")[1]


def test_explain_finds_what_was_sent_with_a_body(gossamer: Run, frontier: MemoryFrontier):
    """Method and body make a fingerprint as the crawl makes it; a body alone means POST."""
    crawled(frontier)
    url = SEED + "api"
    push(frontier, Link(fingerprint("POST", url, b'{"page":1}'), url, host_key(url)))
    assert "never met" in gossamer("explain", "books", url)[1]
    assert "PENDING" in gossamer("explain", "books", url, "--body", '{"page":1}')[1]
    assert "PENDING" in gossamer("explain", "books", url, "--method", "post", "--body", '{"page":1}')[1]
    assert (
        "with this method and body"
        in gossamer("explain", "books", url, "--method", "PUT", "--body", '{"page":1}')[1]
    )


def test_explain_knows_the_ports_that_the_task_allows(gossamer: Run, frontier: MemoryFrontier):
    """A URL on a port that the task was allowed to use is no bad URL here either."""
    crawled(frontier, allow_ports=[6379])
    assert gossamer("explain", "books", "http://a.example:6379/")[0] == 0
    assert gossamer("explain", "books", "http://a.example:27017/")[0] == 1


def test_explain_shows_where_a_body_is_kept(
    gossamer: Run, frontier: MemoryFrontier, monkeypatch: pytest.MonkeyPatch
):
    """Where the store tells the key of the page's blob, the answer names the file that holds it."""
    crawled(frontier)
    known = frontier.explain
    digest = "9f86d0" + "0" * 58

    async def explain(*given: Any) -> Any:
        record = await known(*given)
        assert record is not None
        return msgspec.structs.replace(record, body=f"body-{digest}")

    monkeypatch.setattr(frontier, "explain", explain)
    path = Path(f".gossamer/blobs/body/9f/86/{digest}")
    assert f"Body       {path} (it is no longer there)" in gossamer("explain", "books", SEED + "ok")[1]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"<p>")
    assert f"Body       {path}\n" in gossamer("explain", "books", SEED + "ok")[1]
    assert json.loads(gossamer("explain", "books", SEED + "ok", "--json")[1])["body"] == str(path)


def test_explain_uses_the_tasks_own_url_options(gossamer: Run, frontier: MemoryFrontier):
    """A task that drops parameters knows a URL by its form without them."""
    crawled(frontier, drop_params=["utm_*"])
    assert "DONE" in gossamer("explain", "books", SEED + "ok?utm_source=x")[1]


@pytest.mark.parametrize("settings", [b"", b"not json", b"[]", b'{"settings": {"depth": "deep", "new": 1}}'])
def test_a_foreign_spec_is_no_obstacle(gossamer: Run, frontier: MemoryFrontier, settings: bytes):
    """Settings of another version are read as far as they can be."""
    asyncio.run(frontier.open_task(TaskSpec(name="old", settings=settings)))
    assert gossamer("explain", "old", SEED)[0] == 0


def test_a_parked_host_is_explained(gossamer: Run, frontier: MemoryFrontier):
    """Why nothing comes from a host stands in its row."""

    async def park() -> None:
        await frontier.open_task(TaskSpec(name="books", wish=Wish(robots=False)))
        await frontier.push("books", [link(SEED), link(SEED + "2")])
        session = await frontier.open_session("test")
        (grant, *_) = (await frontier.lease(session, {"books": 1})).grants
        order = HostOrder(bad=True, park=130.0, level=2, delay=1.5)
        await frontier.settle(
            session,
            [Outcome(grant.number, Verdict.RETRY, "http_429", burned=False, sent_ago=0.0, host=order)],
            {},
        )

    asyncio.run(park())
    out = gossamer("explain", "books", SEED + "2")[1]
    assert "its host is parked for 2m 10s more" in out
    assert "1.5s between requests" in out
    assert "1 bad answer in a row" in out


def test_meanings_cover_what_the_engine_says():
    """Every code of the transport and of the retry table has words, and an unknown one is no error."""
    from gossamer.model.retry import CAUSES
    from gossamer.ports.transport import FETCH_CODES

    assert [code for code in (*CAUSES, *FETCH_CODES) if not meanings.meaning(code)] == []
    assert meanings.meaning("http_799") == "the server answered 799"
    assert meanings.meaning("brand_new") == ""


def test_a_task_that_nobody_runs_is_stopped(gossamer: Run, frontier: MemoryFrontier):
    """RUNNING is said of a crawl that runs; programs get the state and whether it is run apart."""
    crawled(frontier, "other")
    assert gossamer("tasks")[1].splitlines()[1].split()[:2] == ["other", "STOPPED"]
    (row,) = json.loads(gossamer("tasks", "--json")[1])
    assert (row["state"], row["is_run"], row["unwritten"]) == ("RUNNING", False, 0)
    assert "because no process runs the task" in gossamer("explain", "other", SEED + "later")[1]


def test_what_is_so_already_is_no_error(gossamer: Run, frontier: MemoryFrontier):
    """Pausing twice and resuming twice change nothing; a task that runs has no reason to show."""
    crawled(frontier)
    for command, state in (("pause", "PAUSED"), ("resume", "RUNNING")):
        assert [gossamer(command, "books")[0] for _ in range(2)] == [0, 0]
        assert state_of(frontier) == state
    assert "(user)" not in gossamer("tasks")[1]


def test_explain_tells_the_matter(gossamer: Run, frontier: MemoryFrontier, monkeypatch: pytest.MonkeyPatch):
    """The sentence beside a failed URL among the kept examples is shown below its code."""
    crawled(frontier)
    detail = "book raised ValueError. Where: books.py:12."

    async def samples(_: str) -> dict[str, list[str]]:
        return {"failed:http_503": [SEED + "other x", f"{SEED}broken {detail}"]}

    monkeypatch.setattr(frontier, "samples", samples)
    assert f"\n           {detail}\n" in gossamer("explain", "books", SEED + "broken")[1]
    assert json.loads(gossamer("explain", "books", SEED + "broken", "--json")[1])["detail"] == detail
    assert detail not in gossamer("explain", "books", SEED + "ok")[1]
