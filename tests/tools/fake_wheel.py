"""A small library shaped like AITER, and a contract over it: what the check must follow to find a callable."""

from __future__ import annotations

from pathlib import Path

from atom_spec.aiter import AiterCall, AiterCallable, KernelTable, Parameter, SourceLine

from tools.aiter_contract.check import BINDING_HEADER, Contract

TABLE = "aiter_meta/hsa/gfx942/pa/pa_asm.csv"
SOURCE = "aiter_meta/csrc/cache.cu"

FILES = {
    "aiter/__init__.py": (
        "try:\n    from .ops.norm import *\n    from .ops.cache import put as write\nexcept Exception:\n    pass\n"
    ),
    "aiter/ops/__init__.py": "",
    "aiter/ops/norm.py": (
        "from ..jit import compile_ops\n"
        "@compile_ops('module_norm', fc_name='norm_forward')\n"
        "def norm(input, weight, epsilon, sensitive=0): ...\n"
        "@compile_ops('module_norm')\n"
        "def add_norm(out, input, weight): ...\n"
    ),
    "aiter/ops/cache.py": "def put(key, value, slots, kind='auto', *, asm_layout=False): ...\nalias = put\n",
    "aiter/gemm.py": "class Tuned:\n    def mm(self, inp, weights, bias=None): ...\ntuned = Tuned()\n",
    BINDING_HEADER: (
        '#define NORM \\\n    m.def("norm_forward", &norm, py::arg("input"), py::arg("weight"), \\\n'
        '          py::arg("eps"), py::arg("sensitive") = 0); \\\n    m.def("add_norm", &add_norm, "no names");\n'
    ),
    TABLE: "qType,Gqa,blkSz,knl_file\nbf16,8,16,a.co\nbf16,16,16,b.co\n",
    "aiter_meta/hsa/gfx942/pa/a.co": "",
    "aiter_meta/hsa/gfx942/pa/b.co": "",
    SOURCE: "start = head * size\n    + place / x; // [blocks, heads, size/x, x]\n",
}


def callables(*items: AiterCallable) -> dict[str, AiterCallable]:
    return {item.name: item for item in items}


_PUT = (
    *(Parameter(name) for name in ("key", "value", "slots")),
    Parameter("kind", "'auto'"),
    Parameter("asm_layout", "False", keyword_only=True),
)
CONTRACT = Contract(
    callables(
        AiterCallable(
            "aiter.norm",
            (Parameter("input"), Parameter("weight"), Parameter("epsilon"), Parameter("sensitive", "0")),
            (AiterCall(("input", "weight", "epsilon")),),
        ),
        AiterCallable(
            "aiter.add_norm",
            (Parameter("out"), Parameter("input"), Parameter("weight")),
            (AiterCall(("out", "input", "weight")),),
        ),
        AiterCallable(
            "aiter.write",
            _PUT,
            (AiterCall(("key", "value", "slots"), ("kind", "asm_layout")), AiterCall(("key", "value"), ("slots",))),
        ),
        AiterCallable("aiter.ops.cache.alias", _PUT, (AiterCall(("key", "value", "slots")),)),
        AiterCallable(
            "aiter.gemm.tuned.mm",
            (Parameter("inp"), Parameter("weights"), Parameter("bias", "None")),
            (AiterCall(("inp", "weights"), ("bias",)),),
        ),
    ),
    (KernelTable(TABLE, "knl_file", "decoding", ((("qType", "bf16"), ("Gqa", "8"), ("blkSz", "16")),)),),
    (SourceLine(SOURCE, "start = head * size + place / x;", "the layout"),),
)


def write_tree(folder: Path, changes: dict[str, tuple[str, str]] | None = None) -> Path:
    """The library under `folder`; in each file of `changes`, the first text is replaced by the second."""
    for name, text in FILES.items():
        old, new = (changes or {}).get(name, ("", ""))
        assert old in text, f"{name} has no {old!r}"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, new) if old else text)
    return folder
