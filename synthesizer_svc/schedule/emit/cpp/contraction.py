"""The contraction emitter's door: decisions of a contraction, and its C++ text under given choices (pure).

``emit_contraction`` returns C++17 text to be placed after ``vecmath.hpp``. It defines

    static void NAME(const T* A, const T* B, T* C [, PARAMS...])

with ``T`` = ``float`` or ``double``, and everything that function needs, all names prefixed by ``NAME_``. ``A``, ``B``,
``C`` point at element (0, ..., 0) of the operands (with a window, B at the unpadded input). ``C`` is not touched when
there is an epilogue (pass ``nullptr``). ``params`` are further parameter declarations
(``"const float* __restrict bias"``) that callbacks' text may name; no name may begin with ``ke_`` or ``NAME_``, and
``A B C`` and single letters are taken.
"""
