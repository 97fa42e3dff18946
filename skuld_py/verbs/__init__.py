"""The table of verbs: what a client can do, said once for HTTP (``gateway``) and the command line (``cli``).

``options`` are what verbs take, ``enqueueing``, ``holding``, ``tasks``, ``queues`` and ``workers`` the verbs by
what they are about, ``table`` all of them, and ``documents`` the JSON that both doors answer. Clients keep methods
of their own, explicit and typed; a verb of the table is a function of a client. Nothing heavy is imported: help
reads all of it.
"""
