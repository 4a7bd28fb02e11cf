// vecmath.hpp: vectors of floats and the mathematics on them. Pasted into every emitted translation unit after
//
//   #define KE_VECTOR_BITS 512   // or 256, 128: the width of one vector
//
// Types (GCC vector extensions, so + - * / < == ?: & | work on them): vf float, vi int32, vu uint32 (KE_W lanes),
// vd double, vl int64 (KE_WD lanes). Functions are overloaded over vf, vd, float and double where that makes sense.
// Nothing depends on -ffast-math, and every function answers NaN, infinities, denormals and huge arguments as the
// mathematical function does. Bounds on float32 errors are tested in ulp (see the tests of vecmath).
//
// Polynomials are our own least-maximum fits (Lawson's reweighted least squares on 400 Chebyshev nodes against 40-digit
// values, coefficients rounded to float32 one after the other with the rest refitted); each names function, interval
// and the error of the fit.
#pragma once
#include "vec_types.hpp"
#include "vec_arith.hpp"
#include "vec_half.hpp"
#include "vec_lanes.hpp"
#include "vec_exp.hpp"
#include "vec_erf.hpp"
#include "vec_trig.hpp"
#include "vec_transpose.hpp"
