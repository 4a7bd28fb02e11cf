"""The trusted child that runs the operator's own text: the only part of the evaluator that imports torch.

Two roles, two processes, one program (``python -m evaluator_svc.oracle_child``): *oracle* writes cases (inputs and
expected outputs in three precisions) and *baseline* runs eager and compiled PyTorch for timing. No candidate code is
ever loaded here, and what the oracle writes is mapped by the controller alone.
"""
