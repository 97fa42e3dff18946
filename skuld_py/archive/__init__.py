"""The archive: ended tasks go to Parquet files before the cluster deletes them, and Spark SQL reads them there.

``rows`` says how a task becomes a row and a row a task; ``archiver`` in which order things happen; ``places`` what
makes a batch durable on a local disk; ``spark_store`` writes and ``spark_history`` reads. Only modules named
``spark_...`` know Spark.
"""
