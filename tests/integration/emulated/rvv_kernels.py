"""Kernels for RISC-V with vectors: honest ones of a vector sum, a softmax and a product, and those that do wrong."""

from __future__ import annotations

HEAD = """
#include <math.h>
#include <riscv_vector.h>
#include "ke_abi.h"
static void add(const float *x, const float *y, float *o, size_t n) {
  for (size_t vl; n; n -= vl, x += vl, y += vl, o += vl) {
    vl = __riscv_vsetvl_e32m8(n);
    __riscv_vse32(o, __riscv_vfadd(__riscv_vle32_v_f32m8(x, vl), __riscv_vle32_v_f32m8(y, vl), vl), vl);
  }
}
"""
ENTRY = "int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {"
SUM = "add(in[0].data, in[1].data, out[0].data, in[0].shape[0]);"


def kernel(body: str, before: str = "") -> str:
    """A kernel of a vector sum; ``body`` may use ``SUM``."""
    return f"{HEAD}{before}\n{ENTRY}\n{body}\nreturn 0;\n}}\n"


VADD = kernel(SUM)
CALL = (
    'register long a7 __asm__("a7") = {number}; register long a0 __asm__("a0") = 1;'
    '__asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");'
)
WRONG_DOERS = {
    "makes_a_system_call": (kernel(CALL.format(number=172) + SUM), "CHEAT"),
    "writes_to_a_descriptor": (kernel(CALL.format(number=64) + SUM), "CHEAT"),
    "ends_the_process": (kernel(SUM + CALL.format(number=94)), "CHEAT"),
    "allocates": (kernel("volatile char *p = malloc(1 << 20); p[0] = 1;" + SUM, "#include <stdlib.h>"), "ANY"),
    "writes_through_null": (kernel("*(volatile int *)0 = 1;"), "RUNTIME_ERROR"),
    "is_an_illegal_instruction": (kernel('__asm__ volatile(".word 0");'), "RUNTIME_ERROR"),
    "writes_beyond_its_output": (kernel(SUM + "((volatile float *)out[0].data)[1 << 20] = 1;"), "RUNTIME_ERROR"),
    "writes_just_beyond_its_output": (
        kernel(SUM + "((volatile float *)out[0].data)[in[0].shape[0]] = 1;"),
        "RUNTIME_ERROR",
    ),
    "writes_its_input": (kernel(SUM + "((volatile float *)in[0].data)[3] = 1;"), "MUTATED_INPUT"),
    "never_returns": (kernel('for (;;) __asm__ volatile("");'), "TIMEOUT"),
    "fakes_the_end": (kernel('__asm__ volatile("slti x0, x0, 0x702");' + SUM), "RIGHT"),
    "jumps_to_the_end_mark": (kernel(SUM + '__asm__ volatile("li t0, 0x4000020c\\n jr t0");'), "RIGHT"),
    "jumps_to_the_begin_mark": (kernel('__asm__ volatile("li t0, 0x40000200\\n jr t0");'), "CHEAT"),
    "jumps_to_the_harness_exit": (kernel('__asm__ volatile("li t0, 0x40000220\\n jr t0");'), "CHEAT"),
    "goes_on_after_the_end": (
        kernel(
            # The harness goes on by registers that the callee has to keep: they are not kept.
            '__asm__ volatile("li s3, 7\\n li a0, 0");__asm__ volatile("li t0, 0x4000020c\\n jr t0" ::: "s3");'
        ),
        "CHEAT",
    ),
    "runs_before_its_call": (
        kernel(SUM, "static float kept; __attribute__((constructor)) static void early(void) { kept = 1; }"),
        "RIGHT",
    ),
    "reaches_for_the_emulator": (kernel(SUM + "*(volatile long *)0x7fff00000000 = 1;"), "ANY"),
}

SOFTMAX = f"""{HEAD}
#define NO __builtin_inff()
static vfloat32m4_t exponential(vfloat32m4_t x, size_t vl) {{
  x = __riscv_vfmax(x, -104.f, vl);
  const vint32m4_t k = __riscv_vfcvt_x(__riscv_vfmul(x, 1.44269504f, vl), vl);
  const vfloat32m4_t kf = __riscv_vfcvt_f(k, vl);
  const vfloat32m4_t r = __riscv_vfnmsac(__riscv_vfnmsac(x, 0.693359375f, kf, vl), -2.12194440e-4f, kf, vl);
  vfloat32m4_t p = __riscv_vfmv_v_f_f32m4(1.9875691500e-4f, vl);
  p = __riscv_vfadd(__riscv_vfmul(p, r, vl), 1.3981999507e-3f, vl);
  p = __riscv_vfadd(__riscv_vfmul(p, r, vl), 8.3334519073e-3f, vl);
  p = __riscv_vfadd(__riscv_vfmul(p, r, vl), 4.1665795894e-2f, vl);
  p = __riscv_vfadd(__riscv_vfmul(p, r, vl), 1.6666665459e-1f, vl);
  p = __riscv_vfadd(__riscv_vfmul(p, r, vl), 5.0000001201e-1f, vl);
  p = __riscv_vfadd(__riscv_vfmadd(p, __riscv_vfmul(r, r, vl), r, vl), 1.f, vl);
  const vint32m4_t low = __riscv_vsra(k, 1, vl), high = __riscv_vsub(k, low, vl);
  p = __riscv_vfmul(p, __riscv_vreinterpret_f32m4(__riscv_vsll(__riscv_vadd(low, 127, vl), 23, vl)), vl);
  return __riscv_vfmul(p, __riscv_vreinterpret_f32m4(__riscv_vsll(__riscv_vadd(high, 127, vl), 23, vl)), vl);
}}
{ENTRY}
  const int64_t rows = in[0].shape[0], n = in[0].shape[1];
  for (int64_t i = 0; i < rows; ++i) {{
    const float *x = (const float *)in[0].data + i * n;
    float *o = (float *)out[0].data + i * n;
    size_t vl;
    vfloat32m1_t most = __riscv_vfmv_s_f_f32m1(-NO, 1), sum = __riscv_vfmv_s_f_f32m1(0, 1);
    for (int64_t j = 0; j < n; j += vl) {{
      vl = __riscv_vsetvl_e32m4(n - j);
      most = __riscv_vfredmax(__riscv_vle32_v_f32m4(x + j, vl), most, vl);
    }}
    const float m = __riscv_vfmv_f(most);
    for (int64_t j = 0; j < n; j += vl) {{
      vl = __riscv_vsetvl_e32m4(n - j);
      const vfloat32m4_t e = exponential(__riscv_vfsub(__riscv_vle32_v_f32m4(x + j, vl), m, vl), vl);
      __riscv_vse32(o + j, e, vl);
      sum = __riscv_vfredusum(e, sum, vl);
    }}
    const float part = 1.f / __riscv_vfmv_f(sum);
    for (int64_t j = 0; j < n; j += vl) {{
      vl = __riscv_vsetvl_e32m4(n - j);
      __riscv_vse32(o + j, __riscv_vfmul(__riscv_vle32_v_f32m4(o + j, vl), part, vl), vl);
    }}
  }}
  return 0;
}}
"""
MATMUL = f"""{HEAD}
{ENTRY}
  const float *a = in[0].data, *b = in[1].data;
  float *c = out[0].data;
  const int64_t rows = in[0].shape[0], n = in[1].shape[1], depth = in[0].shape[1];
  size_t vl;
  for (int64_t j = 0; j < n; j += vl) {{
    vl = __riscv_vsetvl_e32m4(n - j);
    for (int64_t i = 0; i + 4 <= rows; i += 4) {{
      const float *p = a + i * depth;
      vfloat32m4_t c0 = __riscv_vfmv_v_f_f32m4(0, vl), c1 = c0, c2 = c0, c3 = c0;
      for (int64_t k = 0; k < depth; ++k) {{
        const vfloat32m4_t row = __riscv_vle32_v_f32m4(b + k * n + j, vl);
        c0 = __riscv_vfmacc(c0, p[k], row, vl);
        c1 = __riscv_vfmacc(c1, p[depth + k], row, vl);
        c2 = __riscv_vfmacc(c2, p[2 * depth + k], row, vl);
        c3 = __riscv_vfmacc(c3, p[3 * depth + k], row, vl);
      }}
      float *o = c + i * n + j;
      __riscv_vse32(o, c0, vl);
      __riscv_vse32(o + n, c1, vl);
      __riscv_vse32(o + 2 * n, c2, vl);
      __riscv_vse32(o + 3 * n, c3, vl);
    }}
  }}
  return 0;
}}
"""
