"""Retrieval: what is found, what facets exclude, and that answers repeat."""

import dataclasses

import pytest

from knowledge_svc import library, retrieve
from knowledge_svc.documents import Concern, Document, Section
from knowledge_svc.index import FullTextIndex
from knowledge_svc.librarian import Librarian
from knowledge_svc.retrieve import ChipFacets
from shared.events import Bound
from shared.knowledge import KnowledgeQuery

CPU = KnowledgeQuery(chip="cpu-x86_64", language="cpp")


@pytest.fixture(scope="module")
def librarian():
    librarian = Librarian((library.CORPUS,))
    yield librarian
    librarian.close()


QUALITY = [
    ({"words": "online softmax rescale maximum"}, "guidance/numerics-online-softmax"),
    (
        {"words": "softmax of very long rows in one pass", "operator_class": "reduction"},
        "guidance/numerics-online-softmax",
    ),
    ({"words": "layer norm variance loses digits"}, "guidance/numerics-variance"),
    ({"words": "welford merge"}, "guidance/numerics-variance"),
    ({"words": "fast exp polynomial range reduction"}, "guidance/numerics-exp-erf-tanh"),
    ({"words": "gelu erf approximation accuracy"}, "guidance/numerics-exp-erf-tanh"),
    ({"words": "pack panels register tile microkernel", "operator_class": "contraction"}, "guidance/gemm-blocking"),
    ({"operator_class": "contraction", "bound": Bound.COMPUTE, "words": "matmul slow"}, "guidance/gemm-blocking"),
    ({"words": "reorder chain of products X XT Y"}, "guidance/matmul-small-and-skinny"),
    ({"operator_class": "window", "words": "conv1d im2col"}, "guidance/convolution-direct"),
    ({"operator_class": "scan", "words": "cumsum"}, "guidance/scans"),
    ({"operator_class": "scan", "bound": Bound.LATENCY}, "guidance/scans"),
    ({"operator_class": "gather", "words": "embedding rows prefetch"}, "guidance/gather-embedding"),
    ({"operator_class": "reduction", "bound": Bound.LATENCY, "words": "accumulators"}, "guidance/latency-hiding"),
    ({"bound": Bound.MEMORY, "words": "non-temporal stores bypass cache"}, "guidance/streaming-stores"),
    ({"words": "false sharing threads parallel region"}, "guidance/openmp"),
    ({"words": "instance norm per channel statistics", "operator_class": "reduction"}, "guidance/strided-reductions"),
    ({"words": "swiglu gated halves", "operator_class": "pointwise"}, "guidance/pointwise-fusion"),
    ({"words": "llvm-mca port pressure"}, "guidance/reading-llvm-mca"),
    ({"words": "page faults interleave noise measuring"}, "guidance/measuring"),
    ({"error": "WRONG_RESULT: first wrong element 1008 of 1023"}, "guidance/debug-wrong-tail"),
    ({"error": "NONDETERMINISTIC: two runs differ"}, "guidance/debug-nondeterminism"),
    ({"error": "PRECISION_DOWNGRADE rmse 3e-3"}, "guidance/debug-precision"),
    ({"error": "RUNTIME_ERROR signal SIGSEGV"}, "guidance/debug-crashes"),
    ({"error": "RUNTIME_ERROR guard bytes damaged"}, "guidance/debug-crashes"),
    (
        {"error": "COMPILE_ERROR k.cpp:7: error: inlining failed in call to 'always_inline' '_mm512_add_ps'"},
        "guidance/debug-compile-errors",
    ),
    (
        {
            "error": "RUNTIME_ERROR wrote outside its outputs",
            "words": "softmax",
            "operator_class": "reduction pointwise",
        },
        "guidance/debug-crashes",
    ),
    (
        {"error": "WRONG_RESULT error above the limit", "words": "layer norm", "operator_class": "reduction pointwise"},
        "guidance/debug-wrong-tail",
    ),
    (
        {
            "words": "gelu bias residual cheaper approximations AMD",
            "operator_class": "pointwise",
            "bound": Bound.COMPUTE,
        },
        "guidance/numerics-exp-erf-tanh",
    ),
    (
        {"words": "layer norm independent accumulators AMD", "operator_class": "reduction", "bound": Bound.LATENCY},
        "guidance/latency-hiding",
    ),
    ({"error": "MUTATED_INPUT input 0"}, "guidance/debug-mutated-input"),
    ({"error": "LAUNCH_FAILED undefined symbol ke_launch"}, "constraints/c-abi"),
    ({"error": "OUT_OF_MEMORY bad_alloc"}, "constraints/sandbox"),
    ({"words": "nan infinity propagate max"}, "constraints/numerics"),
    ({"words": "ffast-math flags"}, "constraints/build-flags"),
    ({"words": "decline foreign shapes guard"}, "constraints/shape-guards"),
    ({"words": "zen 4 double pumped avx-512"}, "hardware/amd/zen4"),
    ({"words": "skylake frequency licence"}, "hardware/intel/skylake-sp"),
    ({"words": "latency of division and square root"}, "hardware/x86/instruction-costs"),
]


@pytest.mark.parametrize(("asked", "expected"), QUALITY, ids=lambda v: v if isinstance(v, str) else "")
def test_the_document_a_person_would_want_is_among_the_first_three(librarian, asked, expected):
    found = librarian.retrieve(dataclasses.replace(CPU, **asked), 3)
    assert expected in [passage.document_id for passage in found]


GPU = KnowledgeQuery(chip="nvidia-sm_90", language="triton")
H200, MI300X, MI250 = (dataclasses.replace(GPU, chip=chip) for chip in ("nvidia-h200", "amd-gfx942", "amd-gfx90a"))
RVV = KnowledgeQuery(chip="riscv-rvv", language="c-rvv")

OTHER_CHIPS = [
    (GPU, {"operator_class": "reduction", "bound": Bound.MEMORY, "words": "row softmax"}, "guidance/triton-reductions"),
    (
        GPU,
        {
            "operator_class": "reduction",
            "bound": Bound.MEMORY,
            "words": "fewer passes over the data, fusion layer norm",
        },
        "guidance/triton-reductions",
    ),
    (GPU, {"operator_class": "pointwise", "bound": Bound.MEMORY, "words": "gelu bias"}, "guidance/triton-pointwise"),
    (GPU, {"operator_class": "contraction", "bound": Bound.COMPUTE, "words": "matmul"}, "guidance/triton-matmul"),
    (GPU, {"error": "LAUNCH_FAILED k needs 300000 bytes of shared memory a block"}, "guidance/triton-debug"),
    (GPU, {"bound": Bound.OCCUPANCY, "words": "registers a thread, warps resident"}, "hardware/nvidia/hopper"),
    (H200, {"bound": Bound.MEMORY, "words": "bandwidth of memory and L2"}, "hardware/nvidia/hopper"),
    (MI300X, {"bound": Bound.OCCUPANCY, "words": "registers wavefronts LDS"}, "hardware/amd/cdna3"),
    (MI250, {"bound": Bound.OCCUPANCY, "words": "registers wavefronts LDS"}, "hardware/amd/cdna2"),
    (MI250, {"operator_class": "contraction", "bound": Bound.MEMORY, "words": "matmul"}, "guidance/triton-matmul"),
    (RVV, {"operator_class": "contraction", "bound": Bound.COMPUTE, "words": "matmul"}, "guidance/rvv-matmul"),
    (RVV, {"words": "strips vsetvl LMUL"}, "guidance/rvv-loops"),
    (RVV, {"words": "cycles charged by the model"}, "hardware/riscv/rvv"),
    (RVV, {"error": "CHEAT system call 64 of the guest"}, "constraints/c-rvv"),
]


@pytest.mark.parametrize(("chip", "asked", "first"), OTHER_CHIPS, ids=lambda v: v if isinstance(v, str) else "")
def test_the_first_document_for_another_chip_is_the_one_on_its_language_or_itself(librarian, chip, asked, first):
    assert librarian.retrieve(dataclasses.replace(chip, **asked), 3)[0].document_id == first


def test_a_module_that_runs_no_kernel_of_its_own_is_told_the_contract(librarian):
    query = dataclasses.replace(GPU, error="NO_CUSTOM_KERNEL defines no kernel of its own", words="softmax")
    assert "constraints/triton-modules" in [p.document_id for p in librarian.retrieve(query, 3)]


OF_OTHERS = {
    "cpu": ("guidance/triton", "guidance/rvv", "constraints/triton", "constraints/c-rvv", "hardware/nvidia",
            "hardware/riscv", "hardware/amd/cdna"),
    "gpu": ("guidance/rvv", "constraints/c-", "hardware/intel", "hardware/x86", "hardware/amd", "hardware/riscv"),
    "rvv": ("guidance/triton", "constraints/triton", "constraints/c-abi", "hardware/intel", "hardware/x86",
            "hardware/amd", "hardware/nvidia"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("query", "others"),
    [
        (CPU, OF_OTHERS["cpu"]),
        (dataclasses.replace(CPU, language="python"), OF_OTHERS["cpu"]),
        (GPU, OF_OTHERS["gpu"]),
        (RVV, OF_OTHERS["rvv"]),
    ],
    ids=["cpu", "cpu-python", "gpu", "rvv"],
)
@pytest.mark.parametrize(
    "asked",
    [
        {"words": "triton warps shared memory wavefronts vsetvl LMUL AVX registers kernel rows"},
        {"bound": Bound.MEMORY, "operator_class": "reduction"},
        {"error": "LAUNCH_FAILED CHEAT COMPILE_ERROR WRONG_RESULT shared memory triton system call"},
    ],
    ids=["words", "facets", "error"],
)
def test_no_document_is_on_another_kind_of_chip(librarian, query, others, asked):
    found = [p.document_id for p in librarian.retrieve(dataclasses.replace(query, **asked), 100)]
    assert found
    assert not [name for name in found if name.startswith(others)]


def test_a_query_of_facets_alone_finds_documents_for_them(librarian):
    found = librarian.retrieve(dataclasses.replace(CPU, operator_class="contraction", bound=Bound.COMPUTE), 5)
    assert "guidance/gemm-blocking" in [p.document_id for p in found]
    assert all("scan" not in p.document_id for p in found)


DOMINANT = [
    (Bound.MEMORY, "memory-bound: fewer passes over the data, fusion or streaming stores are left", "cache-blocking"),
    (Bound.COMPUTE, "compute-bound: a hot loop calls expf; inline an approximation", "numerics-exp-erf-tanh"),
    (Bound.LATENCY, "latency-bound: more independent accumulators or unrolling", "latency-hiding"),
]


@pytest.mark.parametrize("operator", ["row softmax", "layer norm"])
@pytest.mark.parametrize(("bound", "summary", "expected"), DOMINANT, ids=lambda v: getattr(v, "value", ""))
def test_what_limits_a_kernel_decides_more_than_its_operators_name(librarian, operator, bound, summary, expected):
    query = dataclasses.replace(
        CPU, bound=bound, words=f"{summary} {operator} AMD", operator_class="reduction pointwise"
    )
    found = [passage.document_id for passage in librarian.retrieve(query, 4)]
    assert found[0] == f"guidance/{expected}"
    assert not [name for name in found if "debug" in name]


def test_a_page_on_one_bottleneck_comes_before_one_on_all():
    offered = [document("all", bounds=("memory", "compute", "latency")), document("one", bounds=("memory",))]
    with FullTextIndex(offered) as index:
        query = dataclasses.replace(CPU, words="tile", bound=Bound.MEMORY)
        found = retrieve.retrieve(query, ChipFacets(), offered, index.search, 2)
    assert [p.document_id for p in found] == ["one", "all"]


def test_pages_on_failures_step_back_for_a_kernel_that_passed():
    offered = [document("failure", error_signatures=("TIMEOUT",))]
    with FullTextIndex(offered) as index:
        queries = [dataclasses.replace(CPU, words="tile", bound=bound) for bound in (Bound.UNKNOWN, Bound.MEMORY)]
        unknown, passed = (retrieve.retrieve(q, ChipFacets(), offered, index.search, 1)[0].score for q in queries)
    assert passed == pytest.approx(unknown * retrieve.NO_ERROR, abs=1e-6)


def test_words_that_occur_nowhere_find_nothing(librarian):
    assert librarian.retrieve(dataclasses.replace(CPU, words="xylophone"), 5) == ()


@pytest.mark.parametrize("words", ['"', "a OR b)", "NEAR(", "title:x", "*", "-- ;", "\x00", "é 漢字", "' OR 1=1"])
def test_no_text_is_a_syntax_error(librarian, words):
    librarian.retrieve(dataclasses.replace(CPU, words=words), 5)


def test_answers_repeat_and_come_best_first(librarian):
    query = dataclasses.replace(CPU, words="cache blocking of rows")
    found = librarian.retrieve(query, 10)
    assert found == librarian.retrieve(query, 10)
    assert found == Librarian((library.CORPUS,)).retrieve(query, 10)
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    assert len({p.document_id for p in found}) == len(found) == 10
    assert librarian.retrieve(query, 0) == ()


def test_the_passage_is_the_section_that_fits_and_not_the_whole_document(librarian):
    found = librarian.retrieve(dataclasses.replace(CPU, words="combining lanes associative logsumexp (m, s)"), 3)
    passage = next(p for p in found if p.document_id == "guidance/numerics-online-softmax")
    assert passage.title.endswith(": Combining lanes and blocks")
    assert "Cross-entropy" not in passage.text


def document(name: str, **facets: object) -> Document:
    body = (Section(heading=name, text="tile the loop"),)
    return Document(id=name, title=name, concern=Concern.GUIDANCE, summary="", sections=body, **facets)


FACETS = [
    (document("open"), True),
    (document("vendor", vendor="amd"), True),
    (document("other-vendor", vendor="nvidia"), False),
    (document("architecture", architecture="gfx942"), False),
    (document("language", languages=("triton",)), False),
    (document("class", operator_classes=("scan", "reduction")), True),
    (document("other-class", operator_classes=("scan",)), False),
    (document("other-bound", bounds=("compute",)), False),
    (document("error", error_signatures=("sigsegv",)), True),
    (document("other-error", error_signatures=("TIMEOUT",)), False),
]


@pytest.mark.parametrize(("offered", "kept"), FACETS, ids=lambda v: v.id if isinstance(v, Document) else "")
def test_a_facet_excludes_only_when_both_sides_name_it_and_differ(offered, kept):
    chip = ChipFacets(vendors=("amd", "intel"), architecture="x86_64")
    query = dataclasses.replace(
        CPU, words="tile", operator_class="pointwise+reduction", bound=Bound.MEMORY, error="RUNTIME_ERROR SIGSEGV"
    )
    with FullTextIndex([offered]) as index:
        assert bool(retrieve.retrieve(query, chip, [offered], index.search, 3)) is kept
        bare = KnowledgeQuery(chip="", language="", words="tile")
        assert retrieve.retrieve(bare, ChipFacets(), [offered], index.search, 3)


def test_an_unknown_chip_excludes_nothing(librarian):
    query = KnowledgeQuery(chip="external", language="cpp", words="zen 4 double pumped")
    assert librarian.retrieve(query, 1)[0].document_id == "hardware/amd/zen4"


def test_a_named_vendor_narrows_a_chip_that_several_make(librarian):
    query = dataclasses.replace(CPU, words="caches of AMD EPYC", bound=Bound.MEMORY)
    found = [p.document_id for p in librarian.retrieve(query, 40)]
    assert "hardware/amd/zen4" in found[:3]
    assert not [name for name in found if name.startswith("hardware/intel")]
    both = [p.document_id for p in librarian.retrieve(dataclasses.replace(query, words="caches latency"), 40)]
    assert {"hardware/amd/zen4", "hardware/intel/skylake-sp"} <= set(both)


def test_agreeing_facets_raise_a_document_above_an_equal_one():
    offered = [document("a"), document("b", bounds=("memory",))]
    with FullTextIndex(offered) as index:
        found = retrieve.retrieve(
            dataclasses.replace(CPU, words="tile", bound=Bound.MEMORY), ChipFacets(), offered, index.search, 2
        )
    assert [p.document_id for p in found] == ["b", "a"]
