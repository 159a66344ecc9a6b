"""Deletion vectors: files and changes in a bucket.

Public: ``reader``, ``DeletionVectorWriter`` (writer), ``BucketVectors`` (maintainer).
"""
