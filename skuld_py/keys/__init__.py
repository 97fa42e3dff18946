"""Keys: pairs of CURVE, and the files that hold them. What a key may do, the roster says (``model.roster``)."""
