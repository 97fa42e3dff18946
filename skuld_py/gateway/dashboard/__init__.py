"""The dashboard: the cluster as pages for people, made by the server from what the verbs answer.

A page asks verbs of the one table, by the rights of who looks, and shows their documents; it computes no status of
its own. What it can do to the cluster are verbs of that table, too, each behind a page that says what will happen.
So what a new verb can do stands here as soon as it has its row.

Pages need no script: one of a few lines fetches the page again and exchanges the parts that are alive. Nothing
comes from elsewhere, and a page may load nothing from elsewhere. Rejected: a framework in the browser, which needs
a build of its own and an interface beside the verbs; and a library for live parts, which would do less than those
lines.
"""
