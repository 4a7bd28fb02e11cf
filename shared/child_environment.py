"""The environment of a process that runs or reads somebody's text: who may submit must not read a service's secrets.

A secret may lie in a variable of any name (``key_env`` of an endpoint, an address with a password), and another process
of the same machine may be the one that knows which. So what is passed on is listed, and not what is kept back.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.redaction import holds_a_secret

PASSED = frozenset(
    (
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
        "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "MAX_JOBS", "VIRTUAL_ENV", "GLIBC_TUNABLES", "CUBLAS_WORKSPACE_CONFIG",
    )
)  # fmt: skip
PASSED_BEGINNINGS = (
    "LC_", "LD_", "XDG_", "PYTHON", "CONDA_", "NIX_", "GCC_", "CCACHE_", "KERNELEVOLVE_", "MALLOC_",
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "DNNL_", "ONEDNN_", "ATEN_", "NUMEXPR_",
    "TORCH", "PYTORCH_", "TRITON_", "CUDA_", "CUDNN_", "NVIDIA_", "NVCC_", "NCCL_", "HIP_", "HIPCC_", "ROCM_", "ROCR_",
    "HSA_", "AMD_", "GPU_", "MIOPEN_", "QEMU_",
)  # fmt: skip
"""What tells programs where things are, and libraries how to compute."""
SECRET_ENDINGS = ("_URL", "_DSN", "TOKEN", "TOKENS", "PASSWORD", "SECRET", "KEY", "CREDENTIALS")
"""Never passed on, whatever the beginning. Addresses are among them: they carry passwords."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What of ``environment`` a child may see."""
    return {name: value for name, value in environment.items() if _passed(name.upper()) and not holds_a_secret(value)}


def _passed(name: str) -> bool:
    return (name in PASSED or name.startswith(PASSED_BEGINNINGS)) and not name.endswith(SECRET_ENDINGS)
