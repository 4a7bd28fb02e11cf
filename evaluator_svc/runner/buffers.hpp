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

// Every buffer lies between two stretches without access. Pages are touched now, so that no fault is ever timed.
// Returns sets x (inputs, outputs). Without a descriptor for the outputs (-1) they stay without access.
inline std::vector<KeTensor> map_buffers(Reader& r, uint32_t sets, uint32_t n_in, uint32_t n_out, int inputs_fd,
                                         int outputs_fd) {
  const uint64_t span = r.get<uint64_t>();
  void* reserved = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) _exit(73);
  g_report->base = reinterpret_cast<uint64_t>(reserved);
  const uint32_t n = n_in + n_out;
  std::vector<KeTensor> specs, tensors;
  for (uint32_t i = 0; i < n; ++i) specs.push_back(tensor_from(r));
  for (uint32_t i = 0; i < sets * n; ++i) {
    const bool input = i % n < n_in;
    const uint64_t in_file = r.get<uint64_t>(), at = r.get<uint64_t>(), bytes = r.get<uint64_t>(),
                   data = r.get<uint64_t>();
    char* page = static_cast<char*>(reserved) + at;
    const int fd = input ? inputs_fd : outputs_fd;
    if (fd >= 0) {
      const int access = input ? PROT_READ : PROT_READ | PROT_WRITE;
      const void* got =
          mmap(page, bytes, access, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, static_cast<off_t>(in_file));
      if (got != page) _exit(74);
    }
    tensors.push_back(specs[i % n]);
    tensors.back().data = page + data;
  }
  close(inputs_fd);
  if (outputs_fd >= 0) close(outputs_fd);
  return tensors;
}
