"""Bytes to messages and back: the only room that knows how messages are laid out in msgpack.

``codec`` reads and writes one envelope, ``envelopes`` divides messages among several, ``multipart`` moves their
frames over a socket. Under ``codec``, ``stream`` pulls values off the bytes, ``schema`` turns the field kinds of
``model.fields`` into readers and writers, and ``rules`` holds what must be true of a message beyond the kinds of
its fields.
"""
