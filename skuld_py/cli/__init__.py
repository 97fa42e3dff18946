"""The ``skuld`` command: one file per verb, and beside them what the verbs share.

``main`` names the verbs; ``failures`` turns errors into one line, or a document, and an exit status; ``twins``
says what options are called in the environment and in the configuration file, which is ``settings``; ``values``
are the kinds of arguments (durations, ids); ``options`` the options several verbs take; ``acting`` makes a verb of
a call of the client; ``showing`` is how tasks look on a terminal and as JSON; ``stopping`` how a program that runs
until Ctrl-C ends.

A verb only translates: words into a call of the library, its result into lines. Whatever it decided
beyond that, the Python client could not do. Heavy imports stand inside the verbs, so that help is fast.
"""
