"""Interface of open data files, independent of the format.

Includes the base of formats without pages.

This package knows neither single formats nor tables. Public: ``OpenDataFile`` (open_data_file), ``WholeGroupFile`` (whole_groups).
"""
