"""Compaction of one bucket: rewriting or moving what the strategy picked, changelogs and deletion vectors made on the way, clustering.

Public: ``MergeTreeCompactManager`` (manager), ``MergeTreeCompactTask`` (task).
"""
