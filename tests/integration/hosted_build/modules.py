"""Modules whose extensions need no header of torch, so that they compile in a moment."""

RAW = """
#include <Python.h>
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(%(value)s); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "raw", "", -1, methods};
#define NAMED(name) PyInit_##name
#define INIT(name) NAMED(name)
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }
"""
HEAD = """
import torch
from torch.utils.cpp_extension import load_inline


def built(name, source):
    return load_inline(name=name, cpp_sources=[source], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""
PLAIN = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""
"""It builds nothing."""


def source(value: int) -> str:
    """C++ of an extension whose ``answer()`` is ``value``."""
    return RAW % {"value": value}


def module(body: str) -> str:
    return HEAD + body


def building(*sources: tuple[str, str]) -> str:
    """A module that builds each ``(name, source)`` when it is imported, as ``e0``, ``e1``, ..."""
    return module("".join(f"e{i} = built({name!r}, {text!r})\n" for i, (name, text) in enumerate(sources)))
