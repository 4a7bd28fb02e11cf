// buffers.hpp: maps a candidate's buffers as the controller's layout says (see layout.py).
#pragma once

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "confine.hpp"
#include "ke_abi.h"
#include "report.hpp"

inline KeTensor tensor_from(Reader& r) {
  KeTensor t = {};
  for (auto& v : t.shape) v = r.get<int64_t>();
  for (auto& v : t.strides) v = r.get<int64_t>();
  t.ndim = r.get<int32_t>();
  t.dtype = r.get<int32_t>();
  return t;
}

// Pages are touched now, so that no fault is ever timed. Returns sets x (inputs, outputs). Without a descriptor for the
// outputs (-1) they stay without access. Guarded, every buffer is mapped by itself; dense, each file as a whole.
inline std::vector<KeTensor> map_buffers(Reader& r, uint32_t sets, uint32_t n_in, uint32_t n_out, int inputs_fd,
                                         int outputs_fd) {
  struct Stride {
    uint64_t in_file, at;
  };
  struct Place {
    uint64_t in_file, at, bytes, data;
  };
  const uint64_t span = r.get<uint64_t>();
  const bool dense = r.get<uint64_t>() != 0;
  const uint64_t file_bytes[2] = {r.get<uint64_t>(), r.get<uint64_t>()};
  const Stride strides[2] = {r.get<Stride>(), r.get<Stride>()};
  void* reserved = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) _exit(73);
  g_report->base = reinterpret_cast<uint64_t>(reserved);
  const int fds[2] = {inputs_fd, outputs_fd};
  const auto map = [&](bool output, uint64_t in_file, uint64_t at, uint64_t bytes) {
    if (fds[output] < 0) return;
    const int access = output ? PROT_READ | PROT_WRITE : PROT_READ;
    char* page = static_cast<char*>(reserved) + at;
    const void* got =
        mmap(page, bytes, access, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fds[output], static_cast<off_t>(in_file));
    if (got != page) _exit(74);
  };
  const uint32_t n = n_in + n_out;
  std::vector<KeTensor> specs, tensors;
  std::vector<Place> places;
  for (uint32_t i = 0; i < n; ++i) specs.push_back(tensor_from(r));
  for (uint32_t i = 0; i < n; ++i) places.push_back(r.get<Place>());
  for (uint32_t i = 0; dense && i < n; ++i)
    if (places[i].in_file == 0) map(i >= n_in, 0, places[i].at, file_bytes[i >= n_in]);
  for (uint64_t set = 0; set < sets; ++set) {
    for (uint32_t i = 0; i < n; ++i) {
      const bool output = i >= n_in;
      const uint64_t at = places[i].at + set * strides[output].at;
      if (!dense) map(output, places[i].in_file + set * strides[output].in_file, at, places[i].bytes);
      tensors.push_back(specs[i]);
      tensors.back().data = static_cast<char*>(reserved) + at + places[i].data;
    }
  }
  close(inputs_fd);
  if (outputs_fd >= 0) close(outputs_fd);
  return tensors;
}
