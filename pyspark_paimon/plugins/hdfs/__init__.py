"""Tables on HDFS.

Public: ``HdfsFileIO`` (file_io).
"""
