"""Traits of the forms of instructions. Passes, proofs, reports and the virtual machine ask for these.

The words behind a trait (family, action, flow, space) stay here and in the table. A form that is added says in its row what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from consan.instrument.isa.families import ACTING, BARRIERS, COPIES, ELSEWHERE, HARMLESS, QUIET, STEADY, SYNCHRONISING, UNRECORDED

__all__ = ["AccessTraits", "OrderTraits", "Traits"]

_T = TypeVar("_T")

# Families and actions at which a thread may wait for others. test_wait never does.
_SUSPENDING = frozenset(
    (
        *(("barrier", "sync"), ("barrier", "red"), ("warp-barrier", "sync"), ("cluster-barrier", "wait"), ("mbarrier", "try_wait")),
        ("tcgen05", "alloc"),
    )
)


class _Trait(Generic[_T]):
    """An attribute that is true where a condition holds; computed on first use, since its owner does not change."""

    def __init__(self, holds: Callable[[_T], bool]) -> None:
        self._holds = holds

    def __set_name__(self, owner: type[_T], name: str) -> None:
        self._name = name

    def __get__(self, each: _T, owner: type[_T]) -> bool:
        held = each.__dict__[self._name] = self._holds(each)
        return held


_OfRow = _Trait["Traits"]
_OfOrder = _Trait["OrderTraits"]
_OfAccess = _Trait["AccessTraits"]


class Traits:
    """Traits of a row."""

    name: str
    family: str
    action: str
    flow: str
    status: str

    # -- where control goes ------------------------------------------------------------------------------------------------

    calls = _OfRow(lambda row: row.flow == "call")  # it calls a function
    branches = _OfRow(lambda row: row.flow == "branch")  # it goes to one label
    exits = _OfRow(lambda row: row.flow == "exit")  # the thread ends
    returns = _OfRow(lambda row: row.flow == "return")  # the thread returns to the caller of the function
    leaves = _OfRow(lambda row: row.returns or row.exits)  # the thread leaves the function: it returns or ends
    is_indexed = _OfRow(lambda row: row.flow == "table")  # it goes to one of the labels of a table
    breaks = _OfRow(lambda row: row.flow == "break")  # it stops for a debugger
    sleeps = _OfRow(lambda row: row.action == "sleep")  # the thread waits for some time
    traps = _OfRow(lambda row: row.flow == "trap")  # the kernel ends with an error
    ends = _OfRow(lambda row: row.leaves or row.traps)  # a thread does not go on in this function
    is_of_condition = _OfRow(lambda row: row.branches or row.name == "setp")  # compilers write it for the condition of a statement
    # a thread may go on elsewhere in this function, or not at all: the end of a basic block
    turns = _OfRow(lambda row: row.branches or row.is_indexed or row.ends)

    # -- accesses of a thread ----------------------------------------------------------------------------------------------

    is_load = _OfRow(lambda row: row.family == "load")  # a load, of any space
    is_store = _OfRow(lambda row: row.family == "store")  # a store, of any space
    is_atomic = _OfRow(lambda row: row.family == "atomic")  # an atomic operation that gives what it found
    is_reduction = _OfRow(lambda row: row.family == "reduction")  # an atomic operation that gives nothing
    is_update = _OfRow(lambda row: row.is_atomic or row.is_reduction)  # an atomic operation
    # a load, a store or an atomic operation of the thread itself
    is_ordinary = _OfRow(lambda row: row.is_load or row.is_store or row.is_update)
    # may be performed later than others of its thread: `st.async` and `red.async` with a release
    may_be_late = _OfRow(lambda row: row.is_ordinary and row.action == "release")
    names_many = _OfRow(lambda row: row.name.startswith("multimem"))  # has a multimem address, as bulk copies may, too
    is_of_many = _OfRow(lambda row: row.family == "multimem")  # accesses all memory that a multimem address stands for
    # the warp moves matrices; some lanes give the addresses of rows
    is_matrix_access = _OfRow(lambda row: row.family in ("ldmatrix", "stmatrix"))
    # the warp moves one matrix; which lane accesses which bytes is not specified
    is_whole_matrix_access = _OfRow(lambda row: row.family == "wmma")
    accesses_memory = _OfRow(lambda row: row.is_ordinary or row.is_matrix_access or row.is_whole_matrix_access)  # in the generic proxy
    # a log of global memory has it
    is_recorded_access = _OfRow(lambda row: row.is_ordinary or row.is_whole_matrix_access or row.family in ("surface", "texture"))
    # it accesses memory at addresses of threads, and does nothing else
    is_access = _OfRow(lambda row: row.is_ordinary or row.is_matrix_access or row.family == "cp.async")

    is_annotation = _OfRow(lambda row: row.family == "annotation")  # a comment of `consan.h`
    begins_region = _OfRow(lambda row: row.is_annotation and row.action == "begin")  # from here on accesses are compared with no others
    ends_region = _OfRow(lambda row: row.is_annotation and row.action == "end")  # from here on they are compared again
    orders_by_name = _OfRow(lambda row: row.is_annotation and row.action in ("release", "acquire"))  # an order that the text does not show

    # -- registers ---------------------------------------------------------------------------------------------------------

    is_arithmetic = _OfRow(lambda row: row.family == "arithmetic")  # it computes in registers
    moves = _OfRow(lambda row: row.is_arithmetic and row.action == "move")  # it moves a value or takes an address
    # it turns an address of a space into a generic one, or back
    converts_address = _OfRow(lambda row: row.family == "address" and row.action == "convert")
    is_of_addresses = _OfRow(lambda row: row.family == "address")  # it converts or tests an address
    # it computes the address in another CTA of the cluster
    maps_address = _OfRow(lambda row: row.family == "cluster-address" and row.action == "map")
    is_of_clusters = _OfRow(lambda row: row.family == "cluster-address")  # it computes with addresses of the CTAs of a cluster
    moves_stack = _OfRow(lambda row: row.action in ("alloca", "restore"))  # changes the stack pointer of the thread
    exchanges = _OfRow(lambda row: row.family == "warp-collective")  # lanes of a warp exchange registers
    asks_who_is_active = _OfRow(lambda row: row.action == "active")  # the result is the set of lanes that execute it together
    # its result is of the lane, of the warp or of the cluster: it does not follow from its operands alone
    has_own_result = _OfRow(lambda row: row.exchanges or row.is_of_clusters)
    computes_together = _OfRow(lambda row: row.family == "mma")  # the warp computes with matrices in registers
    # it moves or multiplies matrices with all lanes of a warp
    is_of_matrices = _OfRow(lambda row: row.computes_together or row.is_matrix_access or row.is_whole_matrix_access)

    # -- barriers, fences and mbarriers ------------------------------------------------------------------------------------

    is_cta_barrier = _OfRow(lambda row: row.family == "barrier")  # a barrier of the CTA
    is_warp_barrier = _OfRow(lambda row: row.family == "warp-barrier")  # a barrier of lanes of the warp
    is_cluster_barrier = _OfRow(lambda row: row.family == "cluster-barrier")  # a barrier of the cluster
    is_barrier = _OfRow(lambda row: row.family in BARRIERS)  # a barrier of the CTA, the warp or the cluster
    arrives_only = _OfRow(lambda row: row.is_barrier and row.action == "arrive")  # the thread arrives at a barrier and does not wait
    reduces = _OfRow(lambda row: row.is_cta_barrier and row.action == "red")  # a barrier of the CTA combines a value of each thread
    suspends = _OfRow(lambda row: (row.family, row.action) in _SUSPENDING)  # the thread may block here until others arrive
    is_of_grids = _OfRow(lambda row: row.action in ("grid", "grid-wait"))  # orders grids of dependent launches
    # no log has it
    is_never_recorded = _OfRow(lambda row: row.is_of_many or row.status == "not modelled" or row.is_of_grids)
    is_fence = _OfRow(lambda row: row.family == "fence")  # a fence of memory accesses
    is_proxy_fence = _OfRow(lambda row: row.family == "proxy-fence")  # a fence between proxies
    is_mbarrier = _OfRow(lambda row: row.family == "mbarrier")  # an operation on an mbarrier
    # it may order accesses of two threads: a barrier, a fence, or an operation on an mbarrier
    synchronises = _OfRow(lambda row: row.family in SYNCHRONISING)
    fences_inits = _OfRow(lambda row: row.family == "mbarrier-fence")  # it makes initialisations of mbarriers visible to the cluster
    begins_mbarrier = _OfRow(lambda row: row.is_mbarrier and row.action == "init")  # begins the life of an mbarrier
    ends_mbarrier = _OfRow(lambda row: row.is_mbarrier and row.action == "inval")  # it ends the life of an mbarrier
    # it waits for a phase of an mbarrier, or tests it
    is_phase_wait = _OfRow(lambda row: row.is_mbarrier and row.action in ("test_wait", "try_wait"))
    # waits for a phase of an mbarrier, up to a time limit of the system
    is_blocking_phase_wait = _OfRow(lambda row: row.is_mbarrier and row.action == "try_wait")
    # the thread arrives at an mbarrier
    arrives_at_mbarrier = _OfRow(lambda row: row.is_mbarrier and row.action in ("arrive", "arrive_drop"))
    # an mbarrier gets its arrival when copies of the thread are complete
    arrives_behind_copies = _OfRow(lambda row: row.action == "arrive_after_copies")

    # -- asynchronous operations -------------------------------------------------------------------------------------------

    is_copy = _OfRow(lambda row: row.family == "cp.async")  # a copy of the thread, `cp.async`
    # it belongs to the bulk copies: a copy of bytes or of a tensor, a commit or a wait
    is_bulk = _OfRow(lambda row: row.family in ("bulk", "tensor"))
    is_tensor_copy = _OfRow(lambda row: row.family == "tensor")  # it copies parts of a tensor
    changes_map = _OfRow(lambda row: row.family == "tensormap")  # it changes a tensor map
    is_product = _OfRow(lambda row: row.family == "wgmma" and row.action == "mma_async")  # a warpgroup issues a matrix product
    is_of_products = _OfRow(lambda row: row.family == "wgmma")  # a matrix product of a warpgroup, or its fence, commit or wait
    fences_products = _OfRow(lambda row: row.is_of_products and row.action == "fence")  # it orders registers before matrix products
    takes_cluster = _OfRow(lambda row: row.action == "try_cancel")  # asks for the work of a cluster that has not started
    commits = _OfRow(lambda row: row.action == "commit_group")  # it ends a group of asynchronous operations
    waits_for_groups = _OfRow(lambda row: row.action in ("wait_group", "wait_all"))  # it waits for groups of asynchronous operations
    awaits_products = _OfRow(lambda row: row.is_of_products and row.waits_for_groups)  # waits for groups of matrix products
    is_of_groups = _OfRow(lambda row: row.commits or row.waits_for_groups)  # it ends or awaits groups of asynchronous operations
    # it waits for accesses of the thread to tensor memory
    awaits_tensor_memory = _OfRow(lambda row: row.action in ("wait::ld", "wait::st"))
    is_of_tensor_memory = _OfRow(lambda row: row.family == "tcgen05")  # an operation on tensor memory
    loads_tensor_memory = _OfRow(lambda row: row.is_of_tensor_memory and row.action == "ld")  # moves tensor memory to registers
    # others may notice it: it writes memory, synchronises, or works asynchronously
    acts = _OfRow(lambda row: row.family in ACTING)
    is_harmless = _OfRow(lambda row: row.family in HARMLESS)  # no other thread notices it
    is_unrecorded = _OfRow(lambda row: row.family in UNRECORDED)  # it leaves nothing in a log
    is_quiet = _OfRow(lambda row: row.family in QUIET)  # a thread alone may repeat it in a loop that waits
    is_steady = _OfRow(lambda row: row.family in STEADY)  # it changes no memory
    reaches_elsewhere = _OfRow(lambda row: row.family in ELSEWHERE)  # it reaches memory in a way that the text does not show
    # it issues, commits or awaits copies or matrix products
    is_asynchronous = _OfRow(lambda row: row.family in COPIES or row.is_of_products)


class OrderTraits:
    """Traits of what an instruction, or one of its accesses, orders."""

    sem: str
    scope: str

    is_relaxed = _OfOrder(lambda each: each.sem == "relaxed")  # it says that it orders nothing
    acquires = _OfOrder(lambda each: each.sem in ("acquire", "acq_rel", "sc"))  # what comes after it is ordered behind it
    releases = _OfOrder(lambda each: each.sem in ("release", "acq_rel", "sc"))  # ordered behind what comes before it
    is_of_cta = _OfOrder(lambda each: each.scope == "cta")  # it holds between threads of one CTA only


class AccessTraits:
    """Traits of one access to memory."""

    access: str
    space: str

    only_reads = _OfAccess(lambda each: each.access == "read")  # it reads the bytes and does not change them
    reads = _OfAccess(lambda each: each.access in ("read", "rmw"))  # it reads the bytes, and perhaps changes them
    writes = _OfAccess(lambda each: each.access in ("write", "rmw"))  # it changes the bytes, and perhaps reads them
    updates = _OfAccess(lambda each: each.access == "rmw")  # it reads and changes the bytes in one step
    in_shared = _OfAccess(lambda each: each.space == "shared")  # the address is in a window of shared memory, of this CTA or of the cluster
    in_global = _OfAccess(lambda each: each.space == "global")  # the address is in global memory
    is_parameter = _OfAccess(lambda each: each.space == "param")  # it names a parameter
    is_of_elements = _OfAccess(lambda each: each.space in ("surface", "texture"))  # it names elements of an object, by its handle
    is_generic = _OfAccess(lambda each: each.space == "generic")  # the address says at run time which memory it is in
    # other threads may access the bytes while the kernel runs
    is_visible = _OfAccess(lambda each: each.space not in ("param", "local", "const"))
    may_be_shared = _OfAccess(lambda each: each.in_shared or each.is_generic)  # the address may be in shared memory
    may_be_global = _OfAccess(lambda each: each.in_global or each.is_generic)  # the address may be in global memory
    in_constants = _OfAccess(lambda each: each.space == "const")  # the address is in constant memory
    # other launches, and copies of the host, may access the bytes while the kernel runs
    may_be_outside = _OfAccess(lambda each: each.may_be_global or each.is_of_elements or each.in_constants)
