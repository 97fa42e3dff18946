"""What travels between those who enqueue and those who run: calls with their arguments, and results.

``payloads`` are calls as bytes, ``plain`` values as they travel, ``shapes`` what annotations make of them again,
``results`` what is stored of what a function returned, ``sight`` how a call and a value are shown. Clients, the
gateway and the command line need these as workers do; nothing here knows a task function, a cluster or Spark.
"""
