"""What readers ask of an open data file, whatever its format, and what the formats without pages share.

Knows neither a format nor tables. Public: ``OpenDataFile`` (open_data_file), ``WholeGroupFile`` (whole_groups).
"""
