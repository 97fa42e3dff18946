"""Fenced output: what a task writes becomes visible by its completion alone, once, whatever dies when.

A claim writes below ``PATH/_claims/TASK/TOKEN``, where no other claim writes. When its function has returned, the
worker lists the files into a manifest, which stands beside them; the completion carries its digest. Once the
completion is acknowledged, the directory is renamed to ``PATH/task=TASK``: who reads ``PATH`` without knowing of
Skuld sees whole outputs of completed tasks, and nothing else.

``protocol`` is the rule by which that is done, without a file; ``performing`` does it. ``output`` is what tasks
write through, ``reading`` what readers ask.
"""
