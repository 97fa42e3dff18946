"""A table of inputs that are no envelope, each with the field that the error must name."""

from __future__ import annotations
