"""The frontier in Redis: many workers on many machines crawl one task as if they were one.

The life of a call: Python packs its arguments as MessagePack; one Lua script (the files in `lua/`, in the order of their
names) loads the few rows that the call needs, does to them what `backends.memory` does to its own, and writes them back. A
script runs alone and whole, so a call is one transaction. What may refuse it is asked before its first write, since Redis
undoes nothing. The answer comes back packed; whatever is a matter of policy or of words is decided here in Python.

How records lie in memory: `r` holds records by number, thirty-two to a small hash, which Redis keeps as one flat list; `k`
holds which keys are known, in buckets that grow one by one (linear hashing); a queue is a sorted set of numbers. All keys of
a partition carry one hash tag. See `lua/1_rows.lua`.

What an outage is: calls wait and say so once. A call of a session carries its number, and the store keeps the last answer,
so that a call whose answer was lost is asked again and not done again.
"""
