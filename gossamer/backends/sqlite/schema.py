"""The tables, and the settings of every connection."""

from __future__ import annotations

import sqlite3

VERSION = 2

# WAL with FULL: a commit that returned survives a power cut. The checkpoint is run beside the writer (database.py).
PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA temp_store = MEMORY;
PRAGMA busy_timeout = 30000;
PRAGMA journal_size_limit = 67108864;
"""

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE task (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  seeding INTEGER NOT NULL DEFAULT 1, retrying INTEGER, closures INTEGER NOT NULL DEFAULT 0,
  opened REAL NOT NULL, ended REAL,
  discovered INTEGER NOT NULL DEFAULT 0, terminal INTEGER NOT NULL DEFAULT 0, leased INTEGER NOT NULL DEFAULT 0,
  leased_pages INTEGER NOT NULL DEFAULT 0, pages INTEGER NOT NULL DEFAULT 0, items INTEGER NOT NULL DEFAULT 0,
  lowest INTEGER NOT NULL DEFAULT 0, logged INTEGER NOT NULL DEFAULT 0, errors INTEGER NOT NULL DEFAULT 0);

CREATE TABLE host (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, scheme TEXT NOT NULL, open INTEGER NOT NULL DEFAULT 0,
  next_turn REAL NOT NULL DEFAULT 0, last_sent REAL NOT NULL DEFAULT -1e9, parked_until REAL NOT NULL DEFAULT 0, level INTEGER NOT NULL DEFAULT 0,
  trouble INTEGER NOT NULL DEFAULT 0, bad_since REAL, delay REAL, latency REAL NOT NULL DEFAULT 0,
  crawl_delay REAL NOT NULL DEFAULT 0, robots BLOB, robots_version INTEGER NOT NULL DEFAULT 0,
  robots_until REAL NOT NULL DEFAULT 0, robots_open INTEGER NOT NULL DEFAULT 0);

CREATE TABLE lane (
  host INTEGER NOT NULL, task INTEGER NOT NULL, pending INTEGER NOT NULL DEFAULT 0, open INTEGER NOT NULL DEFAULT 0,
  pages INTEGER NOT NULL DEFAULT 0, ready_at REAL, first_delay REAL NOT NULL DEFAULT 0,
  closed_state INTEGER, closed_code TEXT, PRIMARY KEY (host, task)) WITHOUT ROWID;
CREATE INDEX lane_ready ON lane (task, ready_at, host) WHERE ready_at IS NOT NULL;

CREATE TABLE record (
  id INTEGER PRIMARY KEY, task INTEGER NOT NULL, host INTEGER NOT NULL, parent INTEGER, url TEXT NOT NULL, request TEXT,
  priority INTEGER NOT NULL, depth INTEGER NOT NULL, hops INTEGER NOT NULL, kind INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0, code TEXT, retries INTEGER NOT NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0,
  suspect INTEGER NOT NULL DEFAULT 0, due REAL);
CREATE INDEX record_failed ON record (task, id) WHERE state = 3;

CREATE TABLE known (
  task INTEGER NOT NULL, bucket INTEGER NOT NULL, k1 INTEGER NOT NULL, k2 INTEGER NOT NULL, id INTEGER NOT NULL,
  PRIMARY KEY (task, bucket, k1, k2)) WITHOUT ROWID;

CREATE TABLE queue (
  task INTEGER NOT NULL, host INTEGER NOT NULL, sunk INTEGER NOT NULL, id INTEGER NOT NULL,
  PRIMARY KEY (task, host, sunk, id)) WITHOUT ROWID;

CREATE TABLE delayed (
  due REAL NOT NULL, id INTEGER NOT NULL, task INTEGER NOT NULL, host INTEGER NOT NULL, PRIMARY KEY (due, id)) WITHOUT ROWID;

CREATE TABLE lease (
  number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, record INTEGER, task INTEGER NOT NULL,
  host INTEGER NOT NULL, kind INTEGER NOT NULL);

CREATE INDEX lease_record ON lease (record);

CREATE TABLE session (name TEXT PRIMARY KEY, worker TEXT NOT NULL, beat REAL NOT NULL) WITHOUT ROWID;

CREATE TABLE item (number INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, data TEXT NOT NULL, key TEXT);

CREATE TABLE cursor (
  task INTEGER NOT NULL, sink TEXT NOT NULL, number INTEGER NOT NULL, state BLOB NOT NULL,
  PRIMARY KEY (task, sink)) WITHOUT ROWID;

CREATE TABLE counter (
  task INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (task, name)) WITHOUT ROWID;

CREATE TABLE sample (
  task INTEGER NOT NULL, name TEXT NOT NULL, place INTEGER NOT NULL, example TEXT NOT NULL,
  PRIMARY KEY (task, name, place)) WITHOUT ROWID;
"""

# Apart from the records, which are written side by side and must not grow in their places.
ADDED = """
CREATE TABLE body (task INTEGER NOT NULL, record INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (task, record)) WITHOUT ROWID;

CREATE TABLE pattern (task INTEGER NOT NULL, name TEXT NOT NULL, taken INTEGER NOT NULL, PRIMARY KEY (task, name)) WITHOUT ROWID;
"""

# From each older format to the next one. Columns that are added at the end cost nothing, however long a table is.
STEPS = {
    1: f"""
ALTER TABLE task ADD COLUMN errors INTEGER NOT NULL DEFAULT 0;
UPDATE task SET errors = coalesce((SELECT value FROM counter WHERE counter.task = task.id AND name = 'failed'), 0);
ALTER TABLE item ADD COLUMN key TEXT;
{ADDED}
""",
}

# What a push brings, in the connection's own memory while its transaction lasts.
INBOX = """
CREATE TEMP TABLE IF NOT EXISTS inbox (
  pos INTEGER PRIMARY KEY, k1 INTEGER, k2 INTEGER, host INTEGER, bucket INTEGER, url TEXT, request TEXT, priority INTEGER,
  depth INTEGER, hops INTEGER, kind INTEGER, parent INTEGER, delay REAL);
"""


def create(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file; called inside a transaction."""
    _execute(db, TABLES + ADDED)
    # The pseudo host of seeds: never paced, never parked. Bucket 0 of `known` holds authors' own keys.
    db.execute("INSERT INTO host (id, name, scheme) VALUES (1, '', '')")
    db.execute(f"PRAGMA user_version = {VERSION}")


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring the tables of an older format to this one, in place; called inside a transaction."""
    for step in range(version, VERSION):
        _execute(db, STEPS[step])
    db.execute(f"PRAGMA user_version = {VERSION}")


def _execute(db: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        if statement.strip():
            db.execute(statement)
