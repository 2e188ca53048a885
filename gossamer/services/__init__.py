"""The processes that people start. The only room that knows everything, and the only one that reads the environment.

The life of a command: `cli` parses words, `commands` fill in `options`, `settings` and `loading` make them a spider and a
`Settings`, `submission` a task; `wiring` opens backends, and `running` performs: it feeds, works (alone or with a `crew`),
watches (`overseeing`), shows (`progress`) and reports (`summary`).
"""
