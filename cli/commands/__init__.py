"""One module per command of ``kernelevolve``."""
