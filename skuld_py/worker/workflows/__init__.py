"""The worker's part of workflows: what is around the functions of steps (``flow``), and the tasks of its own that
a workflow has, to feed inputs and to seal outputs.
"""
