"""The frontier in one SQLite file: no service, several processes, nothing lost at a power cut.

The life of a call: the event loop hands it to the one writer thread of this process (`database`), which waits for the
process's turn at the lock file, opens a transaction, and runs a handful of set-based statements whose arguments and
answers travel as one JSON text each. That matters: while a statement runs, the interpreter lock is free and the event
loop goes on; a statement a record would hand the lock to and fro a hundred times a batch.

How records lie on the disk: `record` is a heap in order of discovery, so new rows are written side by side; `known` is
the one judge of what is new, clustered by host because the links of a page mostly stay on it; `queue` holds what may be
leased now, by host and priority; `lane` is one row for each task on each host, with an index of those that are ready. Thus
a lease reads the index and a few queue heads, never all that is pending.
"""
