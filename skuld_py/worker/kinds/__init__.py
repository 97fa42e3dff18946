"""What a worker does with the kinds of tasks besides functions (``calls.kinds``): each is a task function.

They are loaded when a task of theirs is claimed (``registry.lookup``), and run only where the worker's start
allows them: who may enqueue could otherwise read and write all that the worker can, and run programs there.
"""
