"""Batches: tasks of one batched function and queue that run as one Spark job."""
