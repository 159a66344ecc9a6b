"""Deletion vectors: their files read and written, and those of one bucket kept up to date.

Public: ``reader``, ``DeletionVectorWriter`` (writer), ``BucketVectors`` (maintainer).
"""
