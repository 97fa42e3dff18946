"""What a client can do, told once for the two doors that offer it to others, HTTP (``gateway``) and the command
line (``cli``). ``documents`` is the JSON that both answer.
"""
