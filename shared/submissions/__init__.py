"""Operators and kernels in other systems' formats, brought into this project's without changing what they say.

=============================  ====================================================================================
``definition`` ``workload``    flashinfer-bench's and SOL-ExecBench's description of an operator, and of its shapes
``operator_text``              the two as one KernelBench-style module, which the evaluator admits like any other
``solution``                   their kernels: files, an entry point, and how it is called
``bare``                       a module of functions without any form, as Triton kernels are usually written
``module_text`` ``kernel``     either as one module that defines ``ModelNew``
``trace`` ``aggregate``        a verdict as their record, and several of them as one number
=============================  ====================================================================================

Nothing here runs foreign code or reads a file: whoever calls hands in the text. What is wrong with it is a
``UserError`` of one line.
"""
