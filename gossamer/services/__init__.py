"""The processes that people start. The only room that knows everything, and the only one that reads the environment.

The life of a command: `cli` parses words, `commands` fill in `options`, `settings` and `loading` make them a spider and a
`Settings`, `submission` a task; `wiring` opens backends, and `running` lets `performing` feed, work (`working`, alone or with a
`crew`), watch (`overseeing`) and show (`progress`), and reports (`summary`).
"""
