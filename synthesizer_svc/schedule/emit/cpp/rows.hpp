// rows.hpp: what emitted row groups use beside vecmath.hpp: vectors of other types with as many lanes as vf (KE_W) or
// vd (KE_WD), element conversions at loads and stores, and folds over lanes.
typedef int64_t vll __attribute__((vector_size(2 * KE_VB)));   // KE_W int64
typedef float vfh __attribute__((vector_size(KE_VB / 2)));     // KE_WD floats
typedef int32_t vih __attribute__((vector_size(KE_VB / 2)));   // KE_WD int32

template <class V> using ke_elem = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<V>()[0])>>;
template <class V> constexpr int ke_lanes_of = (int)(sizeof(V) / sizeof(ke_elem<V>));
template <class T, int L> struct KeVec { typedef T type __attribute__((vector_size(sizeof(T) * L))); };

template <class V> KE_INLINE V ke_splat(ke_elem<V> x) { return x - (V){}; }
template <class V> KE_INLINE V ke_ids() { V v; for (int i = 0; i < ke_lanes_of<V>; ++i) v[i] = (ke_elem<V>)i; return v; }
template <class To, class From> KE_INLINE To ke_cast(From v) {
  if constexpr (std::is_same_v<To, From>) return v; else return __builtin_convertvector(v, To);
}
// Mask lanes are all ones or zero.
template <class M> KE_INLINE M ke_splat_mask(bool b) { return ke_splat<M>(b ? -1 : 0); }
template <class V, class M> KE_INLINE V ke_pick(M mask, V a, V b) { return mask ? a : b; }
template <class M> KE_INLINE M ke_first(int n) { return ke_ids<M>() < (ke_elem<M>)n; }

// Element types as they lie in memory: E is the memory type, V the vector computed on.
struct KeF16 { uint16_t bits; };
struct KeBf16 { uint16_t bits; };
struct KeBool { uint8_t byte; };
template <class T, class E> KE_INLINE T ke_get(const E* p) {
  if constexpr (std::is_same_v<E, KeF16>) return ke_f16_to_f32(p->bits);
  else if constexpr (std::is_same_v<E, KeBf16>) return ke_bf16_to_f32(p->bits);
  else if constexpr (std::is_same_v<E, KeBool>) return p->byte != 0;
  else return (T)*p;
}
template <class E, class T> KE_INLINE void ke_put(E* p, T x) {
  if constexpr (std::is_same_v<E, KeF16>) p->bits = ke_f32_to_f16(x);
  else if constexpr (std::is_same_v<E, KeBf16>) p->bits = ke_f32_to_bf16(x);
  else if constexpr (std::is_same_v<E, KeBool>) p->byte = x ? 1 : 0;
  else *p = (E)x;
}
// n leading lanes of consecutive elements; n is a constant wherever it matters.
template <class V, class E> KE_INLINE V ke_read(const E* p, int n = ke_lanes_of<V>) {
  constexpr int L = ke_lanes_of<V>;
  if constexpr (std::is_same_v<E, ke_elem<V>> && (std::is_same_v<V, vf> || std::is_same_v<V, vd>)) {
    return n == L ? ke_load(p) : ke_load_part(p, n);
  } else if constexpr (std::is_same_v<E, KeF16> && std::is_same_v<V, vf>) {
    return n == L ? ke_load_f16(&p->bits) : ke_load_f16_part(&p->bits, n);
  } else if constexpr (std::is_same_v<E, KeBf16> && std::is_same_v<V, vf>) {
    return n == L ? ke_load_bf16(&p->bits) : ke_load_bf16_part(&p->bits, n);
  } else if constexpr (std::is_same_v<E, KeF16> || std::is_same_v<E, KeBf16>) {
    V v = {};
    for (int i = 0; i < n; ++i) v[i] = ke_get<ke_elem<V>>(p + i);
    return v;
  } else {
    using Raw = std::conditional_t<std::is_same_v<E, KeBool>, uint8_t, E>;
    typename KeVec<Raw, L>::type raw = {};
    memcpy(&raw, p, n == L ? sizeof raw : n * sizeof(Raw));
    if constexpr (std::is_same_v<E, KeBool>) return __builtin_convertvector(raw, V) != 0;
    else return __builtin_convertvector(raw, V);
  }
}
template <class V, class E> KE_INLINE void ke_write(E* p, V v, int n = ke_lanes_of<V>) {
  constexpr int L = ke_lanes_of<V>;
  if constexpr (std::is_same_v<E, ke_elem<V>> && (std::is_same_v<V, vf> || std::is_same_v<V, vd>)) {
    if (n == L) ke_store(p, v); else ke_store_part(p, v, n);
  } else if constexpr (std::is_same_v<E, KeF16> && std::is_same_v<V, vf>) {
    if (n == L) ke_store_f16(&p->bits, v); else ke_store_f16_part(&p->bits, v, n);
  } else if constexpr (std::is_same_v<E, KeBf16> && std::is_same_v<V, vf>) {
    if (n == L) ke_store_bf16(&p->bits, v); else ke_store_bf16_part(&p->bits, v, n);
  } else if constexpr (std::is_same_v<E, KeF16> || std::is_same_v<E, KeBf16>) {
    for (int i = 0; i < n; ++i) ke_put(p + i, v[i]);
  } else {
    using Raw = std::conditional_t<std::is_same_v<E, KeBool>, uint8_t, E>;
    if constexpr (std::is_same_v<E, KeBool>) v = v & 1;
    auto raw = __builtin_convertvector(v, typename KeVec<Raw, L>::type);
    memcpy((void*)p, &raw, n == L ? sizeof raw : n * sizeof(Raw));
  }
}
template <class V, class E> KE_INLINE V ke_read_strided(const E* p, int64_t stride, int n = ke_lanes_of<V>) {
  V v = {};
  for (int i = 0; i < n; ++i) v[i] = std::is_same_v<E, KeBool> ? -(ke_elem<V>)ke_get<ke_elem<V>>(p + i * stride) : ke_get<ke_elem<V>>(p + i * stride);
  return v;
}
template <class V, class E> KE_INLINE void ke_write_strided(E* p, int64_t stride, V v, int n = ke_lanes_of<V>) {
  for (int i = 0; i < n; ++i) ke_put(p + i * stride, v[i]);
}
// Streaming stores go around the caches; p must be aligned to the vector.
KE_INLINE void ke_stream(float* p, vf v) {
#if KE_VECTOR_BITS == 512
  _mm512_stream_ps(p, (__m512)v);
#elif KE_VECTOR_BITS == 256
  _mm256_stream_ps(p, (__m256)v);
#else
  _mm_stream_ps(p, (__m128)v);
#endif
}
// One lane at a time: what has no vector form.
template <class V, class F> KE_INLINE V ke_each(F f, int n = ke_lanes_of<V>) {
  V v = {};
  for (int i = 0; i < n; ++i) v[i] = (ke_elem<V>)f(i);
  return v;
}
template <class M, class F> KE_INLINE M ke_each_mask(F f, int n = ke_lanes_of<M>) {
  M v = {};
  for (int i = 0; i < n; ++i) v[i] = f(i) ? -1 : 0;
  return v;
}

template <class V, class F> KE_INLINE ke_elem<V> ke_fold_lanes(V v, F f) {
  ke_elem<V> acc = v[0];
  for (int i = 1; i < ke_lanes_of<V>; ++i) acc = f(acc, (ke_elem<V>)v[i]);
  return acc;
}
#define KE_FOLD_OF(NAME, NATIVE, SCALAR)                                                                         \
  template <class V> KE_INLINE ke_elem<V> NAME(V v) {                                                            \
    if constexpr (std::is_same_v<V, vf> || std::is_same_v<V, vd>) return NATIVE(v);                              \
    else return ke_fold_lanes(v, [](auto a, auto b) { return SCALAR; });                                         \
  }
KE_FOLD_OF(ke_fold_sum, ke_hsum, a + b)
KE_FOLD_OF(ke_fold_prod, ke_hprod, a * b)
KE_FOLD_OF(ke_fold_max, ke_hmax, a > b ? a : b)
KE_FOLD_OF(ke_fold_min, ke_hmin, a < b ? a : b)
#undef KE_FOLD_OF
template <class V> KE_INLINE ke_elem<V> ke_fold_max_raw(V v) {
  if constexpr (std::is_same_v<V, vf>) return ke_hmax_raw(v);
  else return ke_fold_lanes(v, [](auto a, auto b) { return a > b ? a : b; });
}
template <class M> KE_INLINE bool ke_fold_any(M m) { return ke_fold_lanes(m, [](auto a, auto b) { return a | b; }) != 0; }
template <class M> KE_INLINE bool ke_fold_all(M m) { return ke_fold_lanes(m, [](auto a, auto b) { return a & b; }) != 0; }
template <class T> KE_INLINE T ke_max2(T a, T b) { return a > b ? a : b; }
template <class T> KE_INLINE T ke_min2(T a, T b) { return a < b ? a : b; }

// Best value so far and where: torch takes the first of equals, and the first NaN beats everything. at < 0: none yet.
template <bool max, class V, class I> KE_INLINE void ke_arg(V& best, I& at, V x, I position, I valid) {
  auto better = max ? x > best : x < best;
  I take = ke_cast<I>(better | ((x != x) & (best == best)));
  take = (take | (at < 0)) & valid;
  at = take ? position : at;
  auto narrow = ke_cast<decltype(better)>(take);
  best = narrow ? x : best;
}
template <bool max, class V, class I> KE_INLINE int64_t ke_fold_arg(V best, I at) {
  ke_elem<V> top = best[0];
  int64_t where = at[0];
  for (int i = 1; i < ke_lanes_of<V>; ++i) {
    ke_elem<V> x = best[i];
    int64_t p = at[i];
    if (p < 0) continue;
    bool nan = x != x, top_nan = top != top;
    bool better = nan ? !top_nan : !top_nan && (max ? x > top : x < top);
    bool equal = nan ? top_nan : x == top;
    if (where < 0 || better || (equal && p < where)) { top = x; where = p; }
  }
  return where;
}

// Integer division as torch has it.
template <class T> KE_INLINE T ke_floordiv(T a, T b) { T q = a / b; return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q; }
KE_INLINE int64_t ke_bounded(int64_t i, int64_t extent) { return i < 0 ? 0 : i >= extent ? extent - 1 : i; }

// Temporaries live as long as the thread: allocated once, never touched between calls.
template <int id> static void* ke_scratch(size_t bytes) {
  struct Block {
    void* p = nullptr;
    size_t bytes = 0;
    ~Block() { free(p); }
  };
  static thread_local Block block;
  if (block.bytes < bytes) {
    free(block.p);
    block.p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    block.bytes = bytes;
  }
  return block.p;
}

template <class V> KE_INLINE V ke_vmax(V a, V b) {
  if constexpr (std::is_same_v<V, vf> || std::is_same_v<V, vd>) return ke_max(a, b);
  else return ((a > b) | (a != a)) ? a : b;
}
template <class V> KE_INLINE V ke_vmin(V a, V b) {
  if constexpr (std::is_same_v<V, vf> || std::is_same_v<V, vd>) return ke_min(a, b);
  else return ((a < b) | (a != a)) ? a : b;
}
template <class V> KE_INLINE V ke_vmax_raw(V a, V b) {
  if constexpr (std::is_same_v<V, vf> || std::is_same_v<V, vd>) return ke_max_raw(a, b);
  else return a > b ? a : b;
}
// Merge of two accumulators of an arg-reduction, lane by lane: of equals the smaller position.
template <bool max, class V, class I> KE_INLINE void ke_arg(V& best, I& at, V x, I position) {
  for (int i = 0; i < ke_lanes_of<V>; ++i) {
    if (position[i] < 0) continue;
    bool nan = x[i] != x[i], top_nan = best[i] != best[i];
    bool better = nan ? !top_nan : !top_nan && (max ? x[i] > best[i] : x[i] < best[i]);
    bool equal = nan ? top_nan : x[i] == best[i];
    if (at[i] < 0 || better || (equal && position[i] < at[i])) { best[i] = x[i]; at[i] = position[i]; }
  }
}

// Inclusive scans along the lanes. The carry is the running value in every lane of a vd: only one operation of each
// step waits for the step before.
// Lanes shifted up by `by`, `fill` entering at lane 0.
template <int by> KE_INLINE vd ke_shift_fill(vd fill, vd v) {
#if KE_VECTOR_BITS == 512
  return (vd)_mm512_alignr_epi64((__m512i)v, (__m512i)fill, 8 - by);
#else
  return __builtin_shuffle(fill, v, ke_iota64() + (KE_WD - by));
#endif
}
template <bool product> KE_INLINE vd ke_scan_lanes(vd v) {
  const vd unit = ke_splat<vd>(product ? 1.0 : 0.0);
  auto join = [](vd a, vd b) __attribute__((always_inline)) { return product ? a * b : a + b; };
  v = join(v, ke_shift_fill<1>(unit, v));
  if constexpr (KE_WD > 2) v = join(v, ke_shift_fill<2 % KE_WD>(unit, v));
  if constexpr (KE_WD > 4) v = join(v, ke_shift_fill<4 % KE_WD>(unit, v));
  return v;
}
KE_INLINE vd ke_last(vd v) { return __builtin_shuffle(v, ke_splat<vl>(KE_WD - 1)); }
template <bool product> KE_INLINE vd ke_scan_step(vd x, vd& carry) {
  vd local = ke_scan_lanes<product>(x), total = ke_last(local);
  vd out = product ? local * carry : local + carry;
  carry = product ? total * carry : total + carry;
  return out;
}
template <bool product> KE_INLINE vf ke_scan_step(vf x, vd& carry) {
  vfh half[2];
  memcpy(half, &x, sizeof x);
  vd low = ke_scan_lanes<product>(__builtin_convertvector(half[0], vd));
  vd high = ke_scan_lanes<product>(__builtin_convertvector(half[1], vd));
  high = product ? high * ke_last(low) : high + ke_last(low);
  vd total = ke_last(high);
  half[0] = __builtin_convertvector(product ? low * carry : low + carry, vfh);
  half[1] = __builtin_convertvector(product ? high * carry : high + carry, vfh);
  carry = product ? total * carry : total + carry;
  memcpy(&x, half, sizeof x);
  return x;
}
template <bool product, class V, class T> KE_INLINE V ke_scan_step(V x, T& carry) {
  for (int i = 0; i < ke_lanes_of<V>; ++i) {
    carry = product ? carry * (T)x[i] : carry + (T)x[i];
    x[i] = (ke_elem<V>)carry;
  }
  return x;
}
template <class T> KE_INLINE T ke_ipow(T a, T b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  T r = 1;
  for (; b; b >>= 1, a *= a) if (b & 1) r *= a;
  return r;
}
