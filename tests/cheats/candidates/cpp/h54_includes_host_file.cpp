// H54 build-time reading: includes a file of the machine that builds it, whose text would show in the error.
// Source: DMOJ issue 318, https://github.com/DMOJ/judge-server/issues/318
// Hopes: that the compiler sees more than its own headers.
#include "/etc/passwd"

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) { return KE_OK; }
