"""The ``skuld`` command: one file per verb, and beside them what the verbs share.

``main`` names the verbs and turns errors into one line and an exit status; ``values`` are the kinds of
arguments (durations, ids); ``options`` the options several verbs take; ``showing`` how tasks look on a
terminal and as JSON; ``stopping`` how a program that runs until Ctrl-C ends.

A verb only translates: words into a call of the library, its result into lines. Whatever it decided
beyond that, the Python client could not do. Heavy imports stand inside the verbs, so that help is fast.
"""
