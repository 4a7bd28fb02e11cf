"""Owns the tree of candidates of every search and decides what to expand, evaluate, prune and announce.

The decisions are pure (``decide`` and what it calls); ``owner`` takes facts through the journal; ``service`` composes.
"""
