"""Requests, results and checks of arguments.

Shared by all engines.
"""
