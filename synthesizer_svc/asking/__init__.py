"""Asking a model for a kernel: which way, in which words, over how many turns, and what came of it.

``share`` chooses who writes which index, ``ways`` are the ways of asking, ``conversation`` holds one exchange and
``writer`` one per index of an expansion. Nothing here runs, builds or loads what a model wrote: ``trials`` asks an
evaluator. What is asked depends on the expansion and on the answers alone, so that an expansion taken up again after a
crash asks the same questions, and finds their answers on record.
"""
