"""Bytes to messages and back: the only room that knows msgpack.

``codec`` is what others import. Under it, ``stream`` pulls values off the bytes, ``schema`` turns the
field kinds of ``model.fields`` into readers and writers, and ``rules`` holds what must be true of a
message beyond the kinds of its fields.
"""
