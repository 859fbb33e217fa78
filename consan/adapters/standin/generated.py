"""`cupy.ElementwiseKernel` and `cupy.ReductionKernel` of the stand-in: CUDA C++ like CuPy's, in the common cases.

Arguments are broadcast, and read and written where they are, as CuPy does: those that share memory race as they would there. The
reduction is one CTA per output with a tree in shared memory: the same shape as CuPy's, so that the sanitizer has the same work.

Not handled: complex numbers, strided `raw` arguments, reductions without an identity, and CuPy's index objects beyond `size()`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from consan.adapters.sources import made_around, place_generated
from consan.adapters.standin.array import NotInStandin, empty, ndarray, of_host
from consan.adapters.standin.context import current
from consan.adapters.standin.kernels import RawKernel
from consan.dataclass import dataclass
from consan.launching.placement import OnDevice, pointer

_C_TYPES = {
    "float64": "double", "float32": "float", "float16": "__half", "bool": "bool",
    "int64": "long long", "int32": "int", "int16": "short", "int8": "signed char",
    "uint64": "unsigned long long", "uint32": "unsigned int", "uint16": "unsigned short", "uint8": "unsigned char",
}  # fmt: skip
_BLOCK = 128
_REDUCTION_BLOCK = 256
_MOST_BLOCKS = 65535

# Few lines, since a source begins above the line of the program that it was made for.
_PRELUDE = """#include <cuda_fp16.h>
typedef __half float16; template <typename T> struct consan_raw { T *data; long long count; """ + (
    "__device__ T &operator[](long long i) const { return data[i]; } __device__ long long size() const { return count; } };"
    "struct consan_size { long long count; __device__ long long size() const { return count; } };"
)


@dataclass(frozen=True)
class Parameter:
    """`raw T x`: one parameter of the kernel's signature."""

    name: str
    type: str
    raw: bool

    @property
    def placeholder(self) -> bool:
        """A type that the arguments decide."""
        return len(self.type) == 1


def _parameters(text: str) -> list[Parameter]:
    words = (part.split() for part in text.split(",") if part.strip())
    return [Parameter(name, kind, "raw" in flags) for *flags, kind, name in words]


def _c_type(dtype: Any) -> str:
    name = np.dtype(dtype).name
    if name not in _C_TYPES:
        raise NotInStandin(f"a kernel over {name}")
    return _C_TYPES[name]


def _is_array(value: Any) -> bool:
    return isinstance(value, ndarray)


class _Types:
    """The dtypes that the arguments give to the type placeholders."""

    def __init__(self) -> None:
        self.known: dict[str, np.dtype[Any]] = {}

    def learn(self, parameter: Parameter, value: Any) -> None:
        """Take an array's dtype, or check it."""
        wanted = self.known.setdefault(parameter.type, value.dtype) if parameter.placeholder else np.dtype(parameter.type)
        if wanted != value.dtype:
            raise TypeError(f"Type is mismatched. {parameter.name} {value.dtype} {wanted}")

    def of(self, parameter: Parameter) -> np.dtype[Any]:
        """The dtype of a parameter."""
        if parameter.placeholder and parameter.type not in self.known:
            raise TypeError(f"type of {parameter.name} ({parameter.type}) is not decided by any argument")
        return self.known[parameter.type] if parameter.placeholder else np.dtype(parameter.type)

    def typedefs(self) -> str:
        """C++ names of the placeholders."""
        return "".join(f"typedef {_c_type(dtype)} {name}; " for name, dtype in self.known.items())


def _resolve(parameters: Sequence[Parameter], values: Sequence[Any]) -> _Types:
    types = _Types()
    pairs = list(zip(parameters, values, strict=False))
    for parameter, value in pairs:
        if _is_array(value):
            types.learn(parameter, value)
    for parameter, value in pairs:
        if not _is_array(value) and parameter.placeholder and parameter.type not in types.known:
            types.known[parameter.type] = np.asarray(value).dtype
    return types


@dataclass(frozen=True)
class _Bound:
    """A parameter with its argument: how it is declared, loaded in the loop, and passed."""

    declaration: str
    in_loop: str
    value: bytes | OnDevice


def _address(array: ndarray, more: bytes = b"") -> OnDevice:
    """A parameter that begins with the address of an array. The end is known if its bytes follow each other."""
    found = pointer(array.data.ptr, array.nbytes if array.flags.c_contiguous else None, array.itemsize)
    return replace(found, data=found.data + more)


def _index(array: ndarray) -> str:
    """The place of the element `_at` of the index space in an array, from its first element."""
    if array.flags.c_contiguous:
        return "_at"
    inner, terms = 1, []
    for extent, step in zip(reversed(array.shape), reversed(array._host.strides), strict=True):
        if step % array.itemsize:
            raise NotInStandin("an array whose elements are not aligned")
        if extent > 1 and step:
            terms.append(f"(_at / {inner} % {extent}) * {step // array.itemsize}")
        inner *= extent
    return " + ".join(terms) or "0"


def _bind(parameter: Parameter, value: Any, types: _Types, writes: bool) -> _Bound:
    kind, name = _c_type(types.of(parameter)), parameter.name
    if not _is_array(value):
        return _Bound(f"const {kind} {name}", "", np.asarray(value).astype(types.of(parameter)).tobytes())
    if parameter.raw:
        if not value.flags.c_contiguous:
            raise NotInStandin(f"a strided raw argument ({name})")
        return _Bound(f"consan_raw<{kind}> {name}", "", _address(value, int(value.size).to_bytes(8, "little")))
    const = "" if writes else "const "
    return _Bound(f"{const}{kind} *_p_{name}", f"{const}{kind} &{name} = _p_{name}[{_index(value)}];", _address(value))


def _begin(types: _Types, preamble: str) -> str:
    lines = f"{_PRELUDE} {types.typedefs()}"
    return f"{lines}\n{preamble}\n" if preamble else lines


def _note_shared_memory(kernel: str, parameters: Sequence[Parameter], inputs: Sequence[Any], outputs: Sequence[ndarray]) -> None:
    """Say how a program may keep an input that the kernel overwrites in another order than it reads it."""
    for parameter, given in ((each, value) for each, value in zip(parameters, inputs, strict=True) if _is_array(value)):
        for output in outputs:
            same = [(each.data.ptr, each.shape, each._host.strides) for each in (given, output)]
            if np.shares_memory(given._host, output._host) and (parameter.raw or same[0] != same[1]):
                name = parameter.name
                words = f"{kernel}: {name} shares memory with what the kernel writes, and no order is given: pass a copy ({name}.copy())"
                current().session.note(words)


def _count(size: int) -> bytes:
    return size.to_bytes(8, "little")


class ElementwiseKernel:
    """`cupy.ElementwiseKernel`."""

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", reduce_dims: bool = True, preamble: str = "",
        no_return: bool = False, return_tuple: bool = False, *, options: tuple[str, ...] = (), loop_prep: str = "", after_loop: str = "",
        **_: Any,
    ) -> None:  # fmt: skip
        self.inputs, self.outputs = _parameters(in_params), _parameters(out_params)
        self.operation, self.preamble, self.name, self.options = operation, preamble, name, tuple(options)
        self._around = (loop_prep, after_loop)
        self._at = None if preamble else made_around(operation)
        self._returns = (no_return, return_tuple)
        self.__name__ = name

    def __call__(self, *args: Any, size: int | None = None, block_size: int = _BLOCK, stream: Any = None, **_: Any) -> Any:
        """Broadcast, launch in a stream or in the current one, return the outputs."""
        with nullcontext() if stream is None else stream:
            return self._called(args, size, block_size)

    def _called(self, args: Sequence[Any], size: int | None, block_size: int) -> Any:
        every = self.inputs + self.outputs
        if not len(self.inputs) <= len(args) <= len(every):
            raise TypeError(f"Wrong number of arguments for {self.name}")
        types = _resolve(every, args)
        shape = self._shape(args, size)
        inputs = [_spread(p, value, shape) for p, value in zip(self.inputs, args, strict=False)]
        given = list(args[len(self.inputs) :])
        outputs = given + [empty(shape, types.of(parameter)) for parameter in self.outputs[len(given) :]]
        self._launch(types, inputs, outputs, size if size is not None else int(np.prod(shape, dtype=np.int64)), block_size)
        return self._answer(outputs)

    def _shape(self, args: Sequence[Any], size: int | None) -> tuple[int, ...]:
        pairs = zip(self.inputs + self.outputs, args, strict=False)
        shapes = [value.shape for parameter, value in pairs if _is_array(value) and not parameter.raw]
        return (size,) if size is not None and not shapes else np.broadcast_shapes(*shapes)

    def _launch(self, types: _Types, inputs: Sequence[Any], outputs: Sequence[ndarray], count: int, block: int) -> None:
        if count == 0:
            return
        _note_shared_memory(self.name, self.inputs, inputs, outputs)
        bound = [_bind(p, v, types, False) for p, v in zip(self.inputs, inputs, strict=True)]
        bound += [_bind(p, v, types, True) for p, v in zip(self.outputs, outputs, strict=True)]
        kernel = RawKernel(self._source(types, bound), self.name, self.options)
        blocks = min(_MOST_BLOCKS, -(-count // block))
        kernel.launch((blocks,), (block,), [*(each.value for each in bound), _count(count)])

    def _source(self, types: _Types, bound: Sequence[_Bound]) -> str:
        before, after = self._around
        loads = " ".join(each.in_loop for each in bound if each.in_loop)
        parameters = ", ".join(each.declaration for each in bound)
        every = "long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < _count; i += (long long)gridDim.x * blockDim.x"
        above = (
            f"{_begin(types, self.preamble)}"
            f'extern "C" __global__ void {self.name}({parameters}, long long _count) {{ const consan_size _ind = {{_count}}; {before}; '
            f"for ({every}) {{ const long long _at = i; {loads} "
        )
        return place_generated(above, f"{self.operation};\n  }}\n  {after};\n}}\n", self._at)

    def _answer(self, outputs: list[Any]) -> Any:
        no_return, as_tuple = self._returns
        if no_return:
            return None
        return outputs[0] if len(outputs) == 1 and not as_tuple else tuple(outputs)


def _spread(parameter: Parameter, value: Any, shape: tuple[int, ...]) -> Any:
    """An input over the whole index space; scalars and raw arguments as they are."""
    return value if parameter.raw or not _is_array(value) else of_host(np.broadcast_to(value._host, shape))


class ReductionKernel:
    """`cupy.ReductionKernel`."""

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: Any,
        name: str = "reduce_kernel", reduce_type: str | None = None, reduce_dims: bool = True, preamble: str = "",
        options: tuple[str, ...] = (), **_: Any,
    ) -> None:  # fmt: skip
        if identity is None or identity == "":
            raise NotInStandin("a ReductionKernel without an identity")
        self.inputs, self.outputs = _parameters(in_params), _parameters(out_params)
        if len(self.outputs) != 1:
            raise NotInStandin("a ReductionKernel with several outputs")
        self._expressions = (map_expr, reduce_expr, post_map_expr)
        self.identity = str(identity).lower() if isinstance(identity, bool) else str(identity)
        self.name, self.reduce_type, self.preamble, self.options = name, reduce_type, preamble, tuple(options)
        self._at = None if preamble else made_around(map_expr)
        self.__name__ = name

    def __call__(self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None) -> Any:
        """Reduce over `axis`, in a stream or in the current one."""
        with nullcontext() if stream is None else stream:
            return self._called(args, out, axis, keepdims=keepdims)

    def _called(self, args: Sequence[Any], out: Any, axis: Any, *, keepdims: bool) -> Any:
        every = self.inputs + self.outputs
        given = args[len(self.inputs) :] or ((out,) if out is not None else ())
        types = _resolve(every, (*args[: len(self.inputs)], *given))
        shapes = [v.shape for p, v in zip(self.inputs, args, strict=False) if _is_array(v) and not p.raw]
        shape = np.broadcast_shapes(*shapes)
        kept, reduced = _axes(axis, len(shape))
        inputs = [self._input(p, v, shape, (*kept, *reduced)) for p, v in zip(self.inputs, args, strict=False)]
        answer = tuple(extent if each in kept else 1 for each, extent in enumerate(shape) if each in kept or keepdims)
        result = given[0] if given else empty(answer, types.of(self.outputs[0]))
        if result.shape != answer:
            raise ValueError(f"Output shape is mismatched: {result.shape} != {answer}")
        self._launch(types, inputs, result, int(np.prod(shape, dtype=np.int64)))
        return result

    @staticmethod
    def _input(parameter: Parameter, value: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
        if parameter.raw or not _is_array(value):
            return value
        return of_host(np.broadcast_to(value._host, shape).transpose(order))

    def _launch(self, types: _Types, inputs: Sequence[Any], result: ndarray, total: int) -> None:
        if result.size == 0:
            return
        output = self.outputs[0]
        _note_shared_memory(self.name, self.inputs, inputs, [result])
        bound = [*(_bind(p, v, types, False) for p, v in zip(self.inputs, inputs, strict=True)), _bind(output, result, types, True)]
        reduce_type = self.reduce_type or output.type
        if reduce_type in _C_TYPES:
            reduce_type = _C_TYPES[reduce_type]
        kernel = RawKernel(self._source(types, bound, reduce_type), self.name, self.options)
        values = [*(each.value for each in bound), _count(total), _count(result.size)]
        kernel.launch((min(result.size, _MOST_BLOCKS),), (_REDUCTION_BLOCK,), values)

    def _source(self, types: _Types, bound: Sequence[_Bound], reduce_type: str) -> str:
        mapped, reduced, post = (re.sub(r"\s*\n\s*", " ", text) for text in self._expressions)
        *inputs, output = bound
        loads = " ".join(each.in_loop for each in inputs if each.in_loop)
        parameters = ", ".join(each.declaration for each in bound)
        above = (
            f"{_begin(types, self.preamble)}typedef {reduce_type} _type_reduce; "
            f"static __device__ _type_reduce _reduce(_type_reduce a, _type_reduce b) {{ return ({reduced}); }} "
            f'extern "C" __global__ void {self.name}({parameters}, long long _total, long long _outputs) {{ '
            f"__shared__ _type_reduce _partial[{_REDUCTION_BLOCK}]; "
            f"const consan_size _in_ind = {{_total}}, _out_ind = {{_outputs}}; "
            "const long long _length = _in_ind.size() / _out_ind.size(); "
            "for (long long i = blockIdx.x; i < _outputs; i += gridDim.x) { "
            f"_type_reduce _sum = _type_reduce({self.identity}); "
            f"for (long long _j = threadIdx.x; _j < _length; _j += {_REDUCTION_BLOCK}) {{ "
            f"const long long _at = i * _length + _j; {loads} _sum = _reduce(_sum, static_cast<_type_reduce>("
        )
        rest = (
            f"{mapped})); }} _partial[threadIdx.x] = _sum; __syncthreads(); "
            f"for (unsigned _half_of = {_REDUCTION_BLOCK // 2}; _half_of; _half_of >>= 1) {{ if (threadIdx.x < _half_of) "
            "_partial[threadIdx.x] = _reduce(_partial[threadIdx.x], _partial[threadIdx.x + _half_of]); __syncthreads(); } "
            f"if (threadIdx.x == 0) {{ const long long _at = i; {output.in_loop} const _type_reduce a = _partial[0]; {post}; }} "
            "__syncthreads(); } }\n"
        )
        return place_generated(above, rest, self._at)


def _axes(axis: Any, dimensions: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Axes that stay, axes that are reduced."""
    chosen = range(dimensions) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduced = tuple(sorted(each % dimensions for each in chosen))
    return tuple(each for each in range(dimensions) if each not in reduced), reduced
