"""The commands of `gossamer`, one small module for each group.

A command reads what was typed, calls the part of `services` that does the work, and tells the result; it decides
nothing about crawling. Heavy imports happen inside the functions, so that `gossamer --help` is quick.
"""
