"""The archive: what has ended goes to Parquet files before the cluster deletes it, and Spark SQL reads it there.

``rows`` says how a task becomes a row and a row a task; ``archiver`` in which order things happen; ``places`` what
makes a batch durable on a local disk; ``spark_store`` writes and ``spark_history`` reads. Only modules named
``spark_...`` know Spark.
"""
