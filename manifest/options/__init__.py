"""Table options: known keys, their effect, and refused values.

Public: ``CoreOptions`` (core_options), ``CatalogOptions`` (catalog_options), ``OptionReader`` (option_reader), ``support``, ``known_keys``.
"""
