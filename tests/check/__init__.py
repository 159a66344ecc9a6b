"""``make check``: lint, types and the tests nearest to what changed, in about a minute.

The import graph is read by hand. ``pytest-testmon`` would need one run of all tests under coverage first, which takes many times the minute.
"""
