"""How the demo predictions were made: ``python -m demo.train``.

Needs ``requirements-train.txt``. Nothing here is imported by the app.
"""
