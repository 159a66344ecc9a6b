"""The rim: what many tables never need. Each folder is a plugin, found by name, and nothing outside of it imports it.

What the core asks of each kind stands in ``pyspark_paimon/seams.py``; ``paimon_base/plugins.py`` has their names.
"""
