"""Standard C and C++ headers for NVRTC, which ships none.

Kernels that nvcc accepts write `#include <cstdint>` or `<cassert>`; NVRTC has no such files. Each name below is handed to
`nvrtcCreateProgram` as a virtual header that forwards to libcu++ (`<cuda/std/...>`) and makes its names visible in `std::`.
Without libcu++ on the include path the fixed-width integers are defined here, the only part that kernels cannot do without.

`<version>` is left out on purpose: libcu++ asks for it with `__has_include` and must not find itself.

Not handled: host-only headers (`<iostream>`, `<vector>`, `<thread>`): they stay an error, since their users are host code, and
specialising templates of `std::` in a kernel file.
"""

from __future__ import annotations

# Headers of libcu++ with the name and the contents of the standard one.
_FORWARDED = (
    "algorithm",
    "array",
    "atomic",
    "bit",
    "bitset",
    "chrono",
    "climits",
    "cmath",
    "complex",
    "concepts",
    "cstddef",
    "cstdlib",
    "cstring",
    "ctime",
    "expected",
    "functional",
    "initializer_list",
    "iterator",
    "limits",
    "memory",
    "mdspan",
    "numbers",
    "numeric",
    "optional",
    "ranges",
    "ratio",
    "span",
    "string_view",
    "tuple",
    "type_traits",
    "utility",
    "variant",
)

# Headers whose functions NVRTC has built in (printf, assert, math, memcpy, placement new): including them must succeed and add nothing.
_BUILT_IN = (
    "assert.h",
    "cassert",
    "ctype.h",
    "errno.h",
    "memory.h",
    "new",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "time.h",
)

# The collectives of CUB. Its <cub/cub.cuh> also has the algorithms that a host launches, which NVRTC refuses.
_COLLECTIVES = (
    *(
        f"block/block_{name}"
        for name in (
            "reduce", "scan", "load", "store", "exchange", "shuffle", "histogram", "radix_rank", "radix_sort", "merge_sort",
            "discontinuity", "adjacent_difference", "run_length_decode",
        )
    ),
    *(f"warp/warp_{name}" for name in ("reduce", "scan", "load", "store", "exchange", "merge_sort")),
)  # fmt: skip

# C headers that define macros and types which NVRTC lacks.
_ALIASED = {"inttypes.h": "cstdint", "limits.h": "climits", "stddef.h": "cstddef"}

_IMPORT = "namespace cuda { namespace std {} }\nnamespace std { using namespace cuda::std; }\n"
_INTEGERS = f"""#pragma once
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstdint>
{_IMPORT}#else
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long long uint64_t;
typedef long long intptr_t; typedef unsigned long long uintptr_t; typedef long long intmax_t; typedef unsigned long long uintmax_t;
namespace std {{
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
}}
#endif
"""


def _macros(values: dict[str, str]) -> str:
    return "".join(f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in values.items())


# The macros of math.h; its functions are built in.
_MATH = "#pragma once\n" + _macros({"INFINITY": "__int_as_float(0x7f800000)", "NAN": "__int_as_float(0x7fffffff)", "HUGE_VALF": "INFINITY"})

# Those of float.h (C 5.2.4.2.2, IEEE 754), which the libcu++ of CUDA 13.0 does not define for NVRTC.
_FLOATS = {"FLT_RADIX": "2", "DECIMAL_DIG": "17", "FLT_EVAL_METHOD": "0"} | {
    f"{kind}_{name}": value
    for kind, values in {
        "FLT": ("24", "6", "(-125)", "(-37)", "128", "38", "0x1.fffffep+127f", "0x1p-23f", "0x1p-126f", "0x1p-149f"),
        "DBL": ("53", "15", "(-1021)", "(-307)", "1024", "308", "0x1.fffffffffffffp+1023", "0x1p-52", "0x1p-1022", "0x1p-1074"),
    }.items()
    for name, value in zip(
        ("MANT_DIG", "DIG", "MIN_EXP", "MIN_10_EXP", "MAX_EXP", "MAX_10_EXP", "MAX", "EPSILON", "MIN", "TRUE_MIN"), values, strict=True
    )
}


def _forward(name: str) -> str:
    # Declared first: the C headers of libcu++ (<cuda/std/climits>) do not open the namespace themselves.
    return f"#pragma once\n#include <cuda/std/{name}>\n{_IMPORT}"


def _alias(name: str) -> str:
    return f"#pragma once\n#if __has_include(<cuda/std/{name}>)\n#include <cuda/std/{name}>\n#endif\n"


def _collectives() -> str:
    first, *others = (f"#include <cub/{name}.cuh>\n" for name in _COLLECTIVES)
    return "#pragma once\n" + first + "".join(f"#if __has_{line[1:].rstrip().replace(' ', '(')})\n{line}#endif\n" for line in others)


VIRTUAL_HEADERS: dict[str, str] = {
    **{name: _forward(name) for name in _FORWARDED},
    **dict.fromkeys(_BUILT_IN, "#pragma once\n"),
    **{name: _alias(target) for name, target in _ALIASED.items()},
    **{name: _alias("cfloat") + _macros(_FLOATS) for name in ("cfloat", "float.h")},
    "cub/cub.cuh": _collectives(),
    "cstdio": "#pragma once\nnamespace std { using ::printf; }\n",
    "cstdint": _INTEGERS,
    "math.h": _MATH,
    "stdint.h": _INTEGERS,
}
