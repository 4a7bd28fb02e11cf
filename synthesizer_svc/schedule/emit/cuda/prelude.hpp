// Arithmetic with torch's meaning; NaN wins in maxima and minima.
template <class T> __device__ inline T ke_max(T a, T b) { return a != a ? a : (a > b ? a : b); }
template <class T> __device__ inline T ke_min(T a, T b) { return a != a ? a : (a < b ? a : b); }
template <class T> __device__ inline T ke_sigmoid(T x) { return T(1) / (T(1) + ke_exp(-x)); }
template <class T> __device__ inline T ke_floordiv(T a, T b) {
  const T q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> __device__ inline T ke_ipow(T a, T b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  T r = 1;
  for (; b; b >>= 1, a *= a)
    if (b & 1) r *= a;
  return r;
}
__device__ inline int64_t ke_bounded(int64_t i, int64_t extent) { return i < 0 ? 0 : i >= extent ? extent - 1 : i; }

// Folds: where one begins, one more element, two partial results as one.
template <class T> struct KeSum {
  T v;
  __device__ void step(T x) { v += x; }
  __device__ void join(const KeSum& o) { v += o.v; }
};
template <class T> struct KeProd {
  T v;
  __device__ void step(T x) { v *= x; }
  __device__ void join(const KeProd& o) { v *= o.v; }
};
template <class T> struct KeMax {
  T v;
  __device__ void step(T x) { v = ke_max(v, x); }
  __device__ void join(const KeMax& o) { v = ke_max(v, o.v); }
};
template <class T> struct KeMin {
  T v;
  __device__ void step(T x) { v = ke_min(v, x); }
  __device__ void join(const KeMin& o) { v = ke_min(v, o.v); }
};
template <class T> struct KeTop {  // NaN passes by
  T v;
  __device__ void step(T x) { v = x > v ? x : v; }
  __device__ void join(const KeTop& o) { v = o.v > v ? o.v : v; }
};
template <class T> struct KeAny {
  T v;
  __device__ void step(T x) { v = v || x; }
  __device__ void join(const KeAny& o) { v = v || o.v; }
};
template <class T> struct KeAll {
  T v;
  __device__ void step(T x) { v = v && x; }
  __device__ void join(const KeAll& o) { v = v && o.v; }
};
// The first position of the extremum, or of NaN where there is one; `at` is negative before the first element.
template <class T, bool most> struct KeArg {
  T v;
  int64_t at;
  __device__ void take(T x, int64_t position) {
    const bool nan = x != x, held = v != v;
    const bool better = held ? nan && position < at : nan || (most ? x > v : x < v) || (x == v && position < at);
    if (at < 0 || better) v = x, at = position;
  }
  __device__ void step(T x, int64_t position) { take(x, position); }
  __device__ void join(const KeArg& o) {
    if (o.at >= 0) take(o.v, o.at);
  }
};
// Maximum and sum of exponentials; the maximum begins finite, so that no difference of two is NaN.
template <class T> struct KeSoft {
  T top, sum;
  __device__ void step(T x) {
    const T d = x - top, e = ke_exp(-ke_fabs(d));
    sum = d > 0 ? sum * e + 1 : sum + e;
    top = x > top ? x : top;
  }
  __device__ void join(const KeSoft& o) {
    const T m = o.top > top ? o.top : top;
    sum = sum * ke_exp(top - m) + o.sum * ke_exp(o.top - m);
    top = m;
  }
};

// What T threads hold of a row, as one result that all of them get. Threads of a row are neighbours, or, `across`,
// neighbours are threads of other rows. All threads of the block come here.
template <int T, int R, bool across, class A> __device__ inline A ke_fold(A a, A* shared, int t, int r) {
  if constexpr (across && T > 1) {
    shared[t * R + r] = a;
    ke_barrier();
    a = shared[r];
    for (int i = 1; i < T; ++i) a.join(shared[i * R + r]);
  } else if constexpr (T > 1) {
    constexpr int width = T < KE_WARP ? T : KE_WARP, warps = T / width;
    for (int m = width / 2; m > 0; m /= 2) a.join(ke_shuffle_xor(a, m));
    if constexpr (warps > 1) {
      if (t % KE_WARP == 0) shared[r * warps + t / KE_WARP] = a;
      ke_barrier();
      a = shared[r * warps];
      for (int i = 1; i < warps; ++i) a.join(shared[r * warps + i]);
    }
  }
  return a;
}
