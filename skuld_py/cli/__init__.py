"""The ``skuld`` command: verbs on clusters and machines, one file each, and the verbs of the table in ``verbs``.

``main`` names the verbs; ``acting`` makes commands of the table's rows, and options for those that are made by
hand; ``failures`` turns errors into one line, or a document, and an exit status; ``twins`` says what options are
called in the environment and in the configuration file, which is ``settings``; ``values`` are the kinds of
arguments (durations, ids); ``options`` what many verbs take; ``showing`` is how tasks look on a terminal;
``stopping`` how a program that runs until Ctrl-C ends.

A verb only translates: words into a call of the library, its result into lines. Whatever it decided
beyond that, the Python client could not do. Heavy imports stand inside the verbs, so that help is fast.
"""
