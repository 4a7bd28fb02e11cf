// Transposition of a square block of vectors, for packing.
#pragma once
#include "vec_types.hpp"

// rows[i][j] becomes rows[j][i]: log2(lanes) rounds, each interleaving vector i with vector i + lanes/2.
template <class V, class I>
KE_INLINE void ke_transpose_rounds(V* rows, I iota) {
  constexpr int lanes = (int)(sizeof(V) / sizeof(rows[0][0]));
  const I low = (iota >> 1) + (iota & 1) * lanes, high = low + lanes / 2;
#pragma GCC unroll 4
  for (int round = 1; round < lanes; round *= 2) {
    V next[lanes];
#pragma GCC unroll 8
    for (int i = 0; i < lanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + lanes / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + lanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) rows[i] = next[i];
  }
}
KE_INLINE void ke_transpose(vf* rows) { ke_transpose_rounds(rows, ke_iota()); }
KE_INLINE void ke_transpose(vd* rows) { ke_transpose_rounds(rows, ke_iota64()); }
