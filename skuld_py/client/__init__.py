"""What users import: ``Client`` and ``AsyncClient``. They know messages and their bytes, and nothing of a node.

``verbs`` are what both can do, written once (``asking`` says how); ``pursuit`` and ``coalescing`` are the rules
of asking nodes and of sharing requests, without a socket.
"""
