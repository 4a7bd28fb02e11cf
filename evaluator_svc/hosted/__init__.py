"""Python-hosted candidates: KernelBench ``ModelNew`` modules, run in a child of a process that has torch already.

Controller's side: ``process`` (the runner), ``child`` (one candidate's process), ``zygote`` (the fork server and its
box), ``box`` (what is in it), ``rules`` (system calls), ``observed`` (what the operating system tells), ``outputs`` and
``memory`` (results, read out of the frozen candidate). Both sides: ``wire``, ``plain``. The rest is the candidate's
side, from ``zygote_main`` on: nothing of that decides a verdict.
"""
