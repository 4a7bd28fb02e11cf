// Builds, and has no ke_launch.
#include "ke_abi.h"

extern "C" int ke_lunch(const KeTensor*, int, KeTensor*, int, void*) { return KE_OK; }
