"""Times of what people wait for, against something that everybody can run beside it.

``python -m benchmarks`` (``make bench``) runs them all. A benchmark is a module with a ``run``
that takes `Settings` and returns a `Table`; it is listed in ``benchmarks.__main__``.
"""
