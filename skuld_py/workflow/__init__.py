"""Workflows: steps in an order, the slots that run them, and how a run comes to its end. Pure.

``definition`` is what a workflow is, ``routing`` what becomes of a step's values, ``graph`` how it is drawn, and
``scheduling`` which slots run which steps.
"""
