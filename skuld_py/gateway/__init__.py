"""The HTTP gateway: every verb of the client as JSON over HTTP/1.1, for programs that are not written in Python.

It is a client like any other: it knows messages and their bytes, and nothing of a node. Any number of gateways may
run, and one may be killed at any time; the claims that it holds for callers lapse then.
"""
