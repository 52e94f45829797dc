"""The demo pack: real models on open data, their predictions, and how they were made.

``demo.cards`` says what everything is, ``demo.load`` fills an MLflow store with it, ``demo.train``
makes it anew (needs ``requirements-train.txt``), ``demo.results`` writes the report.
"""
