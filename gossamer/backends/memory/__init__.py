"""The frontier in memory: the model that every durable store is compared with, and the quick store of tests.

It keeps the contract of `ports.frontier` in plain dicts and lists and is written to be read: where another store and
this one differ, one of them is wrong. It forgets everything with its process, so no crawl of value runs on it.

Reading order: `rows` (what is kept) → `ledger` (how records move) → `granting` → `settling` → `lives` (sessions) and
`items` (the log) → `frontier` (the calls themselves).
"""
