"""pyspark_paimon/cli: TODO."""
