"""How an input's roots are followed until every segment of their trees is done: ``feeder`` is the machine.

``events`` is what it hears and says, ``acks`` what steps send it, ``checkpoint`` what outlives it. ``register`` is
what it knows of one root, ``ring`` when it looks after roots, and ``walk`` how.
"""
