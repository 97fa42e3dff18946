"""Spark speaks to the queue without a worker: the data source ``skuld``, to read and to write, batch and stream.

``choices`` are the options of a read or a write; ``rows`` makes tasks of rows; ``gates`` keeps shut what a write
stored until all of it is there, and ``repeats`` names tasks so that they can be stored twice; ``fence`` says which
run of a stream's batch counts; ``columns`` makes rows of tasks; ``offers`` is how far a stream of ended tasks has
come. These know no Spark. ``spark_source`` registers it all, and ``spark_writing``, ``spark_reading`` and
``spark_streaming`` are what Spark calls.
"""
