"""HTTP server of the tree page for this machine's browser.

Filters are planned while they are typed.
Public: ``TreeServer`` (server).
"""
