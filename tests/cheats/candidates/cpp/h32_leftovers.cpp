// H32 leftovers: writes nothing, and trusts that the memory it is given held the right answer before.
// Source: KernelBench PR 82 `result_reuse_kernel.py`, https://github.com/ScalingIntelligence/KernelBench/pull/82; Sakana
// Hopes: that the output is memory which the reference has just freed.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) { return KE_OK; }
