"""What a form of an instruction is and does, as traits: passes, proofs, reports and the virtual machine ask for these.

The words behind a trait (family, action, flow, space) stay here and in the table. A form that is added says in its row what it is.
"""

from __future__ import annotations

from consan.instrument.isa.families import BARRIERS, COPIES, SYNCHRONISING

__all__ = ["AccessTraits", "OrderTraits", "Traits"]


class Traits:
    """Traits of a row."""

    family: str
    action: str
    flow: str

    # -- where control goes ------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> bool:
        """Whether it calls a function."""
        return self.flow == "call"

    @property
    def branches(self) -> bool:
        """Whether it goes to one label."""
        return self.flow == "branch"

    @property
    def exits(self) -> bool:
        """Whether the thread ends."""
        return self.flow == "exit"

    @property
    def returns(self) -> bool:
        """Whether the thread returns to the caller of the function."""
        return self.flow == "return"

    @property
    def leaves(self) -> bool:
        """Whether the thread leaves the function: it returns or ends."""
        return self.returns or self.exits

    @property
    def is_indexed(self) -> bool:
        """Whether it goes to one of the labels of a table."""
        return self.flow == "table"

    @property
    def breaks(self) -> bool:
        """Whether it stops for a debugger."""
        return self.flow == "break"

    @property
    def sleeps(self) -> bool:
        """Whether the thread waits for some time."""
        return self.action == "sleep"

    @property
    def traps(self) -> bool:
        """Whether the kernel ends with an error."""
        return self.flow == "trap"

    @property
    def ends(self) -> bool:
        """Whether a thread does not go on in this function."""
        return self.leaves or self.traps

    @property
    def turns(self) -> bool:
        """Whether a thread may go on elsewhere in this function, or not at all: the end of a basic block."""
        return self.branches or self.is_indexed or self.ends

    # -- accesses of a thread ----------------------------------------------------------------------------------------------

    @property
    def is_load(self) -> bool:
        """Whether it is a load, of any space."""
        return self.family == "load"

    @property
    def is_store(self) -> bool:
        """Whether it is a store, of any space."""
        return self.family == "store"

    @property
    def is_atomic(self) -> bool:
        """Whether it is an atomic operation that gives what it found."""
        return self.family == "atomic"

    @property
    def is_reduction(self) -> bool:
        """Whether it is an atomic operation that gives nothing."""
        return self.family == "reduction"

    @property
    def is_update(self) -> bool:
        """Whether it is an atomic operation."""
        return self.is_atomic or self.is_reduction

    @property
    def is_ordinary(self) -> bool:
        """Whether it is a load, a store or an atomic operation of the thread itself."""
        return self.is_load or self.is_store or self.is_update

    @property
    def may_be_late(self) -> bool:
        """Whether it may be performed later than others of its thread: `st.async` and `red.async` with a release."""
        return self.is_ordinary and self.action == "release"

    @property
    def is_matrix_access(self) -> bool:
        """Whether the warp moves matrices, of which some lanes give the rows."""
        return self.family in ("ldmatrix", "stmatrix")

    @property
    def is_access(self) -> bool:
        """Whether it accesses memory at addresses of threads, and does nothing else."""
        return self.is_ordinary or self.is_matrix_access or self.is_copy

    # -- registers ---------------------------------------------------------------------------------------------------------

    @property
    def is_arithmetic(self) -> bool:
        """Whether it computes in registers."""
        return self.family == "arithmetic"

    @property
    def moves(self) -> bool:
        """Whether it moves a value or takes an address."""
        return self.is_arithmetic and self.action == "move"

    @property
    def converts_address(self) -> bool:
        """Whether it turns an address of a space into a generic one, or back."""
        return self.family == "address" and self.action == "convert"

    @property
    def is_of_addresses(self) -> bool:
        """Whether it converts or tests an address."""
        return self.family == "address"

    @property
    def maps_address(self) -> bool:
        """Whether it computes the address in another CTA of the cluster."""
        return self.family == "cluster-address" and self.action == "map"

    @property
    def is_of_clusters(self) -> bool:
        """Whether it computes with addresses of the CTAs of a cluster."""
        return self.family == "cluster-address"

    @property
    def exchanges(self) -> bool:
        """Whether lanes of a warp exchange registers."""
        return self.family == "warp-collective"

    @property
    def computes_together(self) -> bool:
        """Whether the warp computes with matrices in registers."""
        return self.family == "mma"

    # -- barriers, fences and mbarriers ------------------------------------------------------------------------------------

    @property
    def is_cta_barrier(self) -> bool:
        """Whether it is a barrier of the CTA."""
        return self.family == "barrier"

    @property
    def is_warp_barrier(self) -> bool:
        """Whether it is a barrier of lanes of the warp."""
        return self.family == "warp-barrier"

    @property
    def is_cluster_barrier(self) -> bool:
        """Whether it is a barrier of the cluster."""
        return self.family == "cluster-barrier"

    @property
    def is_barrier(self) -> bool:
        """Whether it is a barrier of the CTA, the warp or the cluster."""
        return self.family in BARRIERS

    @property
    def arrives_only(self) -> bool:
        """Whether the thread arrives at a barrier and does not wait."""
        return self.is_barrier and self.action == "arrive"

    @property
    def is_fence(self) -> bool:
        """Whether it is a fence of memory accesses."""
        return self.family == "fence"

    @property
    def is_proxy_fence(self) -> bool:
        """Whether it is a fence between proxies."""
        return self.family == "proxy-fence"

    @property
    def is_mbarrier(self) -> bool:
        """Whether it is an operation on an mbarrier."""
        return self.family == "mbarrier"

    @property
    def synchronises(self) -> bool:
        """Whether it may order accesses of two threads: a barrier, a fence, or an operation on an mbarrier."""
        return self.family in SYNCHRONISING

    @property
    def fences_inits(self) -> bool:
        """Whether it makes initialisations of mbarriers visible to the cluster."""
        return self.family == "mbarrier-fence"

    @property
    def ends_mbarrier(self) -> bool:
        """Whether it ends the life of an mbarrier."""
        return self.is_mbarrier and self.action == "inval"

    @property
    def is_phase_wait(self) -> bool:
        """Whether it waits for a phase of an mbarrier, or tests it."""
        return self.is_mbarrier and self.action in ("test_wait", "try_wait")

    @property
    def arrives_at_mbarrier(self) -> bool:
        """Whether the thread arrives at an mbarrier."""
        return self.is_mbarrier and self.action in ("arrive", "arrive_drop")

    @property
    def arrives_behind_copies(self) -> bool:
        """Whether an mbarrier gets its arrival when copies of the thread are complete."""
        return self.action == "arrive_after_copies"

    # -- asynchronous operations -------------------------------------------------------------------------------------------

    @property
    def is_copy(self) -> bool:
        """Whether it is a copy of the thread, `cp.async`."""
        return self.family == "cp.async"

    @property
    def is_bulk(self) -> bool:
        """Whether it belongs to the bulk copies: a copy of bytes or of a tensor, a commit or a wait."""
        return self.family in ("bulk", "tensor")

    @property
    def is_tensor_copy(self) -> bool:
        """Whether it copies parts of a tensor."""
        return self.family == "tensor"

    @property
    def changes_map(self) -> bool:
        """Whether it changes a tensor map."""
        return self.family == "tensormap"

    @property
    def is_product(self) -> bool:
        """Whether a warpgroup issues a matrix product."""
        return self.family == "wgmma" and self.action == "mma_async"

    @property
    def is_of_products(self) -> bool:
        """Whether it is a matrix product of a warpgroup, or its fence, commit or wait."""
        return self.family == "wgmma"

    @property
    def fences_products(self) -> bool:
        """Whether it orders registers before matrix products."""
        return self.is_of_products and self.action == "fence"

    @property
    def commits(self) -> bool:
        """Whether it ends a group of asynchronous operations."""
        return self.action == "commit_group"

    @property
    def waits_for_groups(self) -> bool:
        """Whether it waits for groups of asynchronous operations."""
        return self.action in ("wait_group", "wait_all")

    @property
    def is_of_groups(self) -> bool:
        """Whether it ends or awaits groups of asynchronous operations."""
        return self.commits or self.waits_for_groups

    @property
    def awaits_tensor_memory(self) -> bool:
        """Whether it waits for accesses of the thread to tensor memory."""
        return self.action in ("wait::ld", "wait::st")

    @property
    def is_asynchronous(self) -> bool:
        """Whether it issues, commits or awaits copies or matrix products."""
        return self.family in COPIES or self.is_of_products


class OrderTraits:
    """Traits of what an instruction, or one of its accesses, orders."""

    sem: str
    scope: str

    @property
    def is_relaxed(self) -> bool:
        """Whether it says that it orders nothing."""
        return self.sem == "relaxed"

    @property
    def acquires(self) -> bool:
        """Whether what comes after it is ordered behind it."""
        return self.sem in ("acquire", "acq_rel", "sc")

    @property
    def releases(self) -> bool:
        """Whether it is ordered behind what comes before it."""
        return self.sem in ("release", "acq_rel", "sc")

    @property
    def is_of_cta(self) -> bool:
        """Whether it holds between threads of one CTA only."""
        return self.scope == "cta"


class AccessTraits:
    """Traits of one access to memory."""

    access: str
    space: str

    @property
    def only_reads(self) -> bool:
        """Whether it reads the bytes and does not change them."""
        return self.access == "read"

    @property
    def reads(self) -> bool:
        """Whether it reads the bytes, and perhaps changes them."""
        return self.access in ("read", "rmw")

    @property
    def writes(self) -> bool:
        """Whether it changes the bytes, and perhaps reads them."""
        return self.access in ("write", "rmw")

    @property
    def updates(self) -> bool:
        """Whether it reads and changes the bytes in one step."""
        return self.access == "rmw"

    @property
    def in_shared(self) -> bool:
        """Whether the address is in a window of shared memory, of this CTA or of the cluster."""
        return self.space == "shared"

    @property
    def in_global(self) -> bool:
        """Whether the address is in global memory."""
        return self.space == "global"

    @property
    def is_parameter(self) -> bool:
        """Whether it names a parameter."""
        return self.space == "param"

    @property
    def in_surface(self) -> bool:
        """Whether it names elements of a surface."""
        return self.space == "surface"

    @property
    def is_generic(self) -> bool:
        """Whether the address says at run time which memory it is in."""
        return self.space == "generic"

    @property
    def may_be_shared(self) -> bool:
        """Whether the address may be in shared memory."""
        return self.in_shared or self.is_generic

    @property
    def may_be_global(self) -> bool:
        """Whether the address may be in global memory."""
        return self.in_global or self.is_generic
