"""What a workflow is: its edges, its catalog, its conditions and lifecycles, as values.

``entries`` are the catalog's, ``sources`` what inputs draw from; ``definition`` is the whole. ``reading`` makes it
of plain data or text and finds everything that is wrong; ``writing`` gives its one canonical text and digest.
``builder`` makes it in Python. ``resuming`` takes over what an older workflow has finished.
"""
