"""Which slot runs which step of which workflow.

``allocation`` decides: ``sharing`` among workflows, ``spreading`` over a workflow's steps, ``seating`` and
``grouping`` slot by slot. ``demand`` is what it is told.
"""
