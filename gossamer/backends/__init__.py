"""One folder a technology: each keeps promises of `ports`, and is the only place that imports its driver.

`memory` is the model that the others are compared with; `sqlite`, `curl` and `files` are what a laptop runs on.
"""
