"""Small kernels whose answers are known, and the answer of `consan prove` for one of them."""

from __future__ import annotations

from consan.instrument.ptx import Module, parse
from consan.prove import proof
from consan.prove.assumptions import Assumption, names_of

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
.reg .b32 %r<32>;
.reg .b16 %rs<4>;
.reg .pred %p<16>;
.reg .b64 %rd<32>;
.shared .align 4 .b8 s[4096];
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, s;
mad.lo.s32 %r5, %r3, 64, %r2;
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd1, %rd3;
mad.lo.s32 %r6, %r2, 4, %r4;
"""


def kernel(body: str, cluster: str = "1") -> Module:
    """A kernel that writes 64 elements of `a` for each CTA."""
    head = HEAD.replace("\n{", f"\n.reqnctapercluster {cluster}\n{{", 1) if cluster != "1" else HEAD
    return parse(head + body + "\nret;\n}\n", "k.ptx")


def answer(given: str | Module, *, assume: str = "", block: int = 64, seconds: float = 20, notes: bool = False) -> proof.KernelProof:
    """The answer for a kernel, or for what is in its body."""
    module = kernel(given) if isinstance(given, str) else given
    function = module.functions[0]
    names = names_of(function.params, [], (0, 1))
    assumed = [Assumption(assume, names).formula] if assume else []
    return proof.prove(function, module, (block, 1, 1), (0, 1), assumed, seconds, notes=notes)


PLACE = "mad.lo.s32 %r9, %r9, 4, %r4;\nst.shared.u32 [%r9+64], 1;"  # a number from -16 on
# One thread makes two bulk copies of 512 bytes, so many bytes apart.
BULK = (
    "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra $M;\nmbarrier.init.shared.b64 [s+4088], 1;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [s+4088], 1024;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd2], 512, [s+4088];\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+{}], [%rd2], 512, [s+4088];\n"
    "$W:\nmbarrier.try_wait.parity.shared.b64 %p2, [s+4088], 0;\n@!%p2 bra $W;\n$M:\n"
)
# Each thread copies an element to its own place. `LAST`: every copy has been waited for.
COPY = "cp.async.ca.shared.global [%r6], [%rd4], 4;\n"
COMMIT, SYNC, LAST = "cp.async.commit_group;\n", "bar.sync 0;\n", "\ncp.async.wait_all;"
OWN, OTHER = "ld.shared.u32 %r7, [%r6];", "ld.shared.u32 %r7, [s];"
COUNTED = "mov.u32 %r7, 0;\n$L:\n{}add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;"
STAGES = (
    "mov.u32 %r7, 0;\n"
    + COPY
    + COMMIT
    + "$L:\nadd.s32 %r8, %r7, 1;\nand.b32 %r9, %r8, 1;\nmad.lo.s32 %r9, %r9, 256, %r6;\ncp.async.ca.shared.global [%r9], [%rd4], 4;\n"
    + COMMIT
    + "cp.async.wait_group {};\nbar.sync 0;\nand.b32 %r10, %r7, 1;\nmad.lo.s32 %r10, %r10, 256, %r4;\nld.shared.u32 %r11, [%r10];\n"
    + "{}mov.u32 %r7, %r8;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;\n"
)
TURNS = "mov.u32 %r9, {};\nmov.u32 %r10, {};\n" + COUNTED.format(
    "add.s32 %r8, %r9, 1;\nsetp.gt.s32 %p2, %r8, 2;\nselp.b32 %r9, 0, %r8, %p2;\n"
    "add.s32 %r8, %r10, 1;\nsetp.lt.s32 %p2, %r8, {};\nselp.b32 %r10, %r8, 0, %p2;\n"
    "mad.lo.s32 %r8, %r9, 256, %r6;\nst.shared.u32 [%r8], 1;\nmad.lo.s32 %r8, %r10, 256, %r4;\nld.shared.u32 %r8, [%r8];\nbar.sync 0;\n"
)
INIT = "setp.eq.s32 %p1, %r2, 0;\n@%p1 mbarrier.init.shared.b64 [s], 64;\n"
ARRIVE = "mbarrier.arrive.shared.b64 %rd5, [s];"

STORE, ALL = "st.shared.u32 [%r6], 1;\n", "bar.warp.sync -1;\n"
HALVES = (
    "mul.wide.u32 %rd5, %r3, 64;\nand.b64 %rd6, %rd5, 137438953344;\nand.b64 %rd7, %rd5, {};\nor.b64 %rd6, %rd6, %rd7;\n"
    "cvt.u64.u32 %rd7, %r2;\nadd.s64 %rd6, %rd6, %rd7;\nshl.b64 %rd6, %rd6, 2;\nadd.s64 %rd6, %rd1, %rd6;\nst.global.u32 [%rd6], 1;"
)
WIDENED = (
    "mul.lo.s32 %r7, %r3, {};\ncvt.s64.s32 %rd5, %r7;\ncvt.u64.u32 %rd6, %r2;\nor.b64 %rd5, %rd5, %rd6;\nshl.b64 %rd5, %rd5, 2;\n"
    "add.s64 %rd5, %rd1, %rd5;\nst.global.u32 [%rd5], 1;"
)
# Two warps at barriers of their own, with what each does before, between, and behind them.
ARMS = "setp.lt.u32 %p1, %r2, 32;\n@%p1 bra $A;\n{}bra $B;\n$A:\n{}$B:\n{}".format
FIRST_WARP = "setp.ge.u32 %p2, %r2, {};\n@%p2 bra $E;\n{}\n$E:".format
# Elements that go round with the block, eight rounds, each at a permuted place; and what a thread does with the place.
PERMUTED = (
    "mov.u32 %r7, %r2;\n$L:\nshr.u32 %r8, %r7, 3;\nand.b32 %r8, %r8, 7;\nxor.b32 %r8, %r8, %r7;\n{}mad.lo.s32 %r9, %r8, 4, %r4;\n"
    "st.shared.u32 [%r9], %r7;\n{}add.s32 %r7, %r7, 64;\nsetp.lt.u32 %p1, %r7, 512;\n@%p1 bra $L;"
).format
LAST_ROUND = "setp.ge.u32 %p2, %r7, 448;\nselp.b32 %r10, 447, 0, %p2;\nsub.s32 %r8, %r8, %r10;\n"
OTHER_HALF = "xor.b32 %r8, %r8, 1;\nmad.lo.s32 %r9, %r8, 4, %r4;\nld.shared.u16 %rs1, [%r9+2];\n"
NEAR, FAR = (f"xor.b32 %r17, %r2, {bit};\nmad.lo.s32 %r18, %r17, 4, %r4;\nld.shared.u32 %r19, [%r18];\n" for bit in (16, 32))
# A number by bit 1 of the thread, and one by bit 2, which is made to bits `{}`: what they have together, and the other bits.
MERGED = (
    "and.b32 %r7, %r2, 2;\nshl.b32 %r7, %r7, 12;\nbfe.s32 %r8, %r2, 2, 1;\nand.b32 %r8, %r8, {};\n"
    "or.b32 %r7, %r7, %r8;\nand.b32 %r9, %r2, 57;\nmad.lo.s32 %r7, %r9, 4, %r7;\nadd.s32 %r7, %r7, %r4;\nst.shared.u32 [%r7], %r2;"
).format
ROWS = "mad.lo.s32 %r6, {}, 16, %r4;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%r6], {{%r2, %r2, %r2, %r2}};\n"
# Lane l gives row l of four matrices of a warp, and %r8 has the first word of its warp. `OWN_ROWS`: by which lane gets a word of them.
OWN_ROWS = (
    "and.b32 %r7, %r2, 31;\nand.b32 %r8, %r2, 32;\nmad.lo.s32 %r8, %r8, 16, %r4;\nmad.lo.s32 %r9, %r7, {}, %r8;\n{}\n"
    "mad.lo.s32 %r6, %r7, 16, %r8;\nldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r6];"
).format
# Lane l stores the first half of the words that it gets by `.trans`: row 2 * (l % 4) of the first matrix, and element l / 4 in it.
OWN_HALF = "and.b32 %r14, %r7, 3;\nshr.u32 %r15, %r7, 2;\nmad.lo.s32 %r14, %r14, 16, %r15;\nmad.lo.s32 %r9, %r14, 2, %r8;\n{}".format
STORED_WORDS = "st.shared.u32 [%r9], 1;\nst.shared.u32 [%r9+128], 1;\nst.shared.u32 [%r9+256], 1;\nst.shared.u32 [%r9+384], 1;"
# Four matrices at a time, one further in each of four rounds.
FURTHER = (
    "setp.ge.u32 %p2, %r2, 32;\n@%p2 ret;\nmov.u32 %r7, {};\n$L:\nsub.s32 %r8, %r7, {};\nmad.lo.s32 %r8, %r8, 8, %r2;\n"
    + "mad.lo.s32 %r6, %r8, 16, %r4;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%r6], {{%r2, %r2, %r2, %r2}};\n"
    + "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, {};\n@%p1 bra $L;"
).format
# The first thread of each CTA stores 256 bytes in bulk, `{}` bytes apart; what is before, what it does then, and what all do then.
STORED = (
    "mul.wide.u32 %rd5, %r3, {};\nadd.s64 %rd5, %rd1, %rd5;\n{}setp.ne.u32 %p4, %r2, 0;\n@%p4 bra $M;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%rd5], [s], 256;\n{}$M:\n{}"
).format
FENCE, BULK_COMMIT, BULK_WAIT = "fence.proxy.async.shared::cta;\n", "cp.async.bulk.commit_group;\n", "cp.async.bulk.wait_group {};\n".format
DONE, READ = BULK_COMMIT + BULK_WAIT(0), BULK_COMMIT + "cp.async.bulk.wait_group.read 0;\n"
FILLED, AGAIN = STORE + FENCE + SYNC, SYNC + STORE
# A CTA stores a row of n elements; `{}`: the conditions before the loop, and those for later rounds.
AHEAD = (
    "mad.lo.s32 %r8, %r3, %r1, %r2;\nmul.wide.s32 %rd5, %r8, 4;\nadd.s64 %rd5, %rd1, %rd5;\n{}mov.u32 %r7, 0;\n$L:\n"
    "@%p2 st.global.u32 [%rd5], 1;\nmad.lo.s32 %r9, %r7, 64, %r2;\n{}add.s64 %rd5, %rd5, 256;\nadd.s32 %r7, %r7, 1;\n"
    "shl.b32 %r10, %r7, 6;\nsetp.lt.s32 %p1, %r10, %r1;\n@%p1 bra $L;"
)
SMALLER = "add.s32 %r11, %r{}, {};\nsetp.lt.s32 %p{}, %r11, %r1;\n".format
# A thread stores a row of n elements. `{}`: the first condition.
OWN_ROW = (
    "cvt.s64.s32 %rd6, %r1;\ncvt.s64.s32 %rd5, %r5;\nmul.lo.s64 %rd5, %rd5, %rd6;\nshl.b64 %rd5, %rd5, 2;\nadd.s64 %rd5, %rd1, %rd5;\n"
    "{}mov.u64 %rd7, 0;\n$L:\n@%p2 st.global.u32 [%rd5], 1;\nadd.s64 %rd5, %rd5, 4;\nadd.s64 %rd7, %rd7, 1;\n"
    "setp.lt.s64 %p2, %rd7, %rd6;\n@%p2 bra $L;"
)
# The same, where each round computes the element of the next one.
ELEMENTS = (
    "mul.lo.s32 %r8, %r5, %r1;\nmov.u32 %r10, %r8;\nsetp.lt.s32 %p1, %r1, 1;\n@%p1 bra $E;\n"
    + COUNTED.format(
        "mul.wide.s32 %rd5, %r10, 4;\nadd.s64 %rd5, %rd1, %rd5;\nst.global.u32 [%rd5], 1;\nadd.s32 %r9, %r7, {};\nadd.s32 %r10, %r8, %r9;\n"
    )
    + "\n$E:"
)
TWO_BUFFERS = (
    "and.b32 %r20, %r7, 1;\nmad.lo.s32 %r17, %r20, 256, %r6;\nst.shared.u32 [%r17], 1;\n"
    + ALL
    + "xor.b32 %r17, %r2, 16;\nmad.lo.s32 %r18, %r17, 4, %r4;\nmad.lo.s32 %r18, %r20, 256, %r18;\nld.shared.u32 %r19, [%r18];\n"
)

WIDE = "mad.lo.s32 %r9, %r2, 12, %r6;\n"  # four words of each thread
MET = WIDE + "mov.u32 %r7, 0;\n$L:\nmad.lo.s32 %r8, %r7, 4, %r9;\nst.shared.u32 [%r8], 1;\nadd.s32 %r7, %r7, {};\n{}@%p1 bra $L;"

# A call through a pointer, what loads its result, and the function that it is to.
CALLED = (
    "{{\n.param .b32 param0;\n.param .b32 {0};\nst.param.b32 [param0], %r5;\np_0: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "mov.u64 %rd5, f;\ncall ({0}), %rd5, (param0), p_0;\n{1}\n}}\n"
)
CALL = CALLED.format("back", "ld.param.b32 %r7, [back];")
FUNCTION = (
    "\nret;\n}}\n.func (.param .b32 back) f(.param .b32 given)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.b32 %r1, [given];\n{}"
    "st.param.b32 [back], %r1;\n"
)
ONLY = FUNCTION.format("add.s32 %r1, %r1, 1;\n")
FUNCTION_LOADS = FUNCTION.format("ld.global.u32 %r1, [%rd1];\n")
BEHIND_CALL = "setp.eq.s32 %p1, %r7, 0;\n@%p1 bra $L;\nbar.sync 0;\n$L:\nbar.sync 0;\n"

FLAG = "setp.eq.s32 %p1, %r7, 0;\n@%p1 bra $L;\nbar.sync 0;\n$L:\nbar.sync 0;"
SHIFTED = "and.b32 %r8, %r8, 63;\nadd.s32 %r8, %r8, %r2;\nmad.lo.s32 %r8, %r8, 4, %r4;\nst.shared.u32 [%r8], 1;\n"
# All threads of a CTA load one of its 32 elements; half of them store.
HALF = (
    "and.b32 %r8, %r2, 31;\nmad.lo.s32 %r8, %r3, 32, %r8;\nmul.wide.s32 %rd5, %r8, 4;\nadd.s64 %rd6, %rd1, %rd5;\n"
    "ld.global.u32 %r7, [%rd6];\nsetp.lt.s32 %p1, %r2, 32;\n@%p1 st.global.u32 [%rd6], %r7;\n"
)

FIELDS = "ld.param.v2.u32 {%r7, %r8}, [b];\n"
ALIKE = FIELDS + "add.s32 %r9, %r8, %r3;\nst.shared.v2.u32 [s], {%r9, 1};"  # threads of a CTA store one value


CUT = "and.b32 %r21, %r20, {};\n"  # the bits of an address that a descriptor has
LINES = 16 << 32 | 8 << 16  # without a swizzle


def product(before: str, behind: str, *, at: str = "m", cut: str = CUT.format(262128), b: int = 2048, fields: int = LINES) -> str:
    """A product of two warps: 64 rows of 32 bytes from `at` on, and 8 rows further on. `before` and `behind` it: other text."""
    place = f"mov.u32 %r20, {at};\n{cut}shr.u32 %r21, %r21, 4;\ncvt.u64.u32 %rd20, %r21;\n"
    operands = f"or.b64 %rd20, %rd20, {fields};\nadd.s64 %rd21, %rd20, {b >> 4};\n"
    multiply = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd20, %rd21, 1, 1, 1, 0, 0;\n"
    head = ".shared .align 1024 .b8 m[8192];\n.shared .align 16 .b8 q[8192];\n.reg .f32 %f<5>;\n"
    return f"{head}{place}{operands}{before}wgmma.fence.sync.aligned;\n{multiply}{behind}"


def placed(at: int) -> str:
    """Each thread stores an element from a place in the operands' variable on."""
    return f"mov.u32 %r22, m;\nmad.lo.s32 %r22, %r2, 4, %r22;\nst.shared.u32 [%r22+{at}], 1;\n"


END_PRODUCT = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned {};\n"
OPERANDS = placed(0) + FENCE + SYNC
SWIZZLED = 1 << 62 | 64 << 32  # lines of 128 bytes
PRODUCTS = {
    "a product of what is behind a fence": product(OPERANDS, END_PRODUCT.format(0)),
    "a product whose operand is written again": product(OPERANDS, END_PRODUCT.format(0) + SYNC + placed(0)),
    "a product whose operand is written again before a barrier": product(OPERANDS, END_PRODUCT.format(0) + SYNC + placed(0) + SYNC),
    "a product beside other bytes": product("", placed(2304) + END_PRODUCT.format(0)),
    "a product of swizzled operands": product("", END_PRODUCT.format(0) + SYNC + placed(0), fields=SWIZZLED, b=64),
}
RACES_OF_PRODUCTS = {
    "a product that still reads": product("", END_PRODUCT.format(1) + SYNC + placed(0)),
    "a product in no group": product("", "wgmma.wait_group.sync.aligned 0;\n" + SYNC + placed(0)),
    "a product that is waited for behind a barrier": product("", SYNC + placed(0) + END_PRODUCT.format(0)),
    "a product of what is written without a fence": product(placed(0) + SYNC, END_PRODUCT.format(0)),
    "a product of what the round before has written without a fence": product(
        "mov.u32 %r23, 0;\n$L:\n",
        END_PRODUCT.format(0) + SYNC + placed(0) + SYNC + "add.s32 %r23, %r23, 1;\nsetp.lt.s32 %p9, %r23, %r1;\n@%p9 bra $L;",
    ),
    "a product of two threads without a barrier": product("", END_PRODUCT.format(0) + placed(0)),
    "the last bytes of A": product("", placed(2044) + END_PRODUCT.format(0), b=4096),
    "the last bytes of B": product("", placed(4348) + END_PRODUCT.format(0), b=4096),
    "the last line of a swizzled operand": product("", placed(8188) + END_PRODUCT.format(0), fields=SWIZZLED, b=64),
    "a wait for copies behind a product": product("", COMMIT + "cp.async.wait_all;\n" + SYNC + placed(0)),
}
LEAVE = "setp.lt.s32 %p1, %r2, %r1;\n@%p1 bra ${};\n"  # the first threads
NONE = "setp.lt.s32 %p2, %r1, 1;\n@%p2 bra $X;\n"  # a launch in which all threads leave
BEHIND = "ld.shared.u32 %r7, [s];\nbra $X;\n"
# An address of shared memory is computed in 64 bits. The case uses this many of them.
NARROWED = "mov.u64 %rd5, s;\n{}add.s64 %rd6, %rd5, %rd6;\ncvt.u{}.u64 {}, %rd6;\n{}st.shared.u32 [%r7], 1;".format
PROVEN = {
    "an address of 32 bits of 64": NARROWED("mul.wide.u32 %rd6, %r2, 4;\n", 32, "%r7", ""),
    "threads that leave before a barrier": LEAVE.format("X") + STORE + SYNC + "ld.shared.u32 %r7, [s+252];\n$X:",
    "a barrier behind some threads' return": "setp.lt.s32 %p1, %r2, 32;\n@%p1 ret;\nbar.sync 0;",
    "threads that leave in different rounds": "mov.u32 %r7, 0;\n$L:\nsetp.eq.s32 %p1, %r7, %r2;\n@%p1 bra $X;\n"
    + STORE
    + SYNC
    + "ld.shared.u32 %r8, [s+252];\n"
    + SYNC
    + "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p2, %r7, %r1;\n@%p2 bra $L;\n$X:",
    **PRODUCTS,
    "places from a field": FIELDS + "add.s32 %r9, %r8, %r2;\nmad.lo.s32 %r9, %r9, 4, %r4;\nst.shared.u32 [%r9], %r2;",
    "volatile accesses of lanes": "st.volatile.shared.u32 [s], %r2;\nld.volatile.shared.u32 %r7, [s];\nst.volatile.shared.u32 [s], %r7;",
    "an assertion": "st.global.u32 [%rd4], 1;\ncall __assertfail;",
    "a barrier behind a flag that nobody writes": "st.global.u32 [%rd4], 1;\nld.global.u32 %r7, [%rd2];\n" + FLAG,
    "places beside one that nobody writes": "ld.global.u32 %r8, [%rd2];\n" + SHIFTED,
    "code that no thread comes to": "setp.gt.u32 %p1, %r2, 100;\n@%p1 st.global.u32 [%rd1], 1;\nst.global.u32 [%rd4], 1;",
    "loads of no use": HALF,
    "a call of a function that computes": CALL + "st.global.u32 [%rd4], %r7;" + ONLY,
    "a call of a function that loads where nobody writes": CALL + FUNCTION_LOADS,
    "rounds that end where a number is met": MET.format(1, "setp.ne.s32 %p1, %r7, 4;\n"),
    "words in one piece": WIDE + "".join(f"st.shared.u32 [%r9+{place}], 1;\n" for place in (0, 8, 4, 12)),
    "a barrier of the warp between": STORE + ALL + NEAR,
    "a barrier of the warp in all rounds, between barriers": COUNTED.format(STORE + ALL + NEAR + "bar.sync 0;\n"),
    "a condition for the next round": AHEAD.format(SMALLER(2, 0, 2), SMALLER(9, 64, 2)),
    "a condition for the round behind the next": AHEAD.format(
        SMALLER(2, 0, 2) + SMALLER(2, 64, 3), "mov.pred %p2, %p3;\n" + SMALLER(9, 128, 3)
    ),
    "an element for the next round": ELEMENTS.format(1),
    "rows of threads": OWN_ROW.format("setp.gt.s32 %p2, %r1, 0;\n"),
    "a bulk store of what is behind a fence": STORED(256, FILLED, DONE, ""),
    "a bulk store whose bytes are written again": STORED(256, FILLED, READ, AGAIN),
    "a bulk store that its thread loads back": STORED(256, FILLED, DONE + "ld.global.u32 %r7, [%rd5];\n", ""),
    "bulk stores in rounds": COUNTED.format(STORED(256, FILLED, DONE, SYNC)),
    "bits that two large numbers do not share": MERGED((1 << 12) + (1 << 14)),
    "a sum of many parts": "mov.u32 %r7, %r2;\n"
    + 700 * "mad.lo.s32 %r7, %r7, 3, %r1;\n"
    + "and.b32 %r8, %r7, 127;\nmad.lo.s32 %r8, %r8, 4, %r4;\n"
    "st.shared.u32 [%r8], 1;",
    "rows of a matrix that a warp stores": ROWS.format("%r2"),
    "rows of a matrix that a warp stores in rounds": COUNTED.format(ROWS.format("%r2")),
    "rows of a matrix in rounds, one matrix further": FURTHER(0, 0, 4),
    "words of rows that a lane gets": OWN_ROWS(4, STORED_WORDS, ""),
    "halves of rows that a lane gets": OWN_ROWS(4, OWN_HALF("st.shared.u16 [%r9+16], %rs1;"), ".trans"),
    "barriers of the warp in rounds": COUNTED.format(STORE + ALL + NEAR + ALL),
    "one barrier of the warp in rounds of two buffers": COUNTED.format(TWO_BUFFERS),
    "a copy that a warp has waited for": COPY + "cp.async.wait_all;\n" + ALL + NEAR,
    "a copy over what a warp has read": NEAR + ALL + COPY + LAST,
    "a barrier of one whole warp": FIRST_WARP(32, STORE + ALL + NEAR),
    "barriers of one whole warp in rounds": FIRST_WARP(32, COUNTED.format(STORE + ALL + NEAR + ALL)),
    "barriers at two instructions": STORE + ARMS(SYNC, SYNC, OTHER),
    "barriers of two arms before another one": STORE + ARMS(SYNC + NEAR, SYNC, SYNC + STORE),
    "permuted places of rounds": PERMUTED("", ""),
    "own elements": "st.global.u32 [%rd4], 1;",
    "own elements of a guard": "setp.ge.s32 %p1, %r5, %r1;\n@%p1 bra $E;\nst.global.u32 [%rd4], 1;\n$E:",
    "another array": "st.global.u32 [%rd4], 1;\nld.global.u32 %r7, [%rd2];",
    "a barrier between": "st.shared.u32 [%r6], 1;\nbar.sync 0;\nld.shared.u32 %r7, [s];",
    "a swizzle": "xor.b32 %r7, %r2, 5;\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;",
    "a bit as a mask": "bfe.s32 %r7, %r2, 5, 1;\nand.b32 %r7, %r7, 2052;\nand.b32 %r8, %r2, 31;\nmad.lo.s32 %r7, %r8, 8, %r7;\n"
    "add.s32 %r8, %r7, %r4;\nst.shared.u32 [%r8], 1;",
    "a number in two parts": HALVES.format(64),
    "numbers of disjoint bits, one of more bits": WIDENED.format(64),
    "numbers of disjoint bits": "shl.b32 %r7, %r3, 8;\nor.b32 %r7, %r7, %r2;\nmul.wide.s32 %rd5, %r7, 4;\nadd.s64 %rd5, %rd1, %rd5;\n"
    "st.global.u32 [%rd5], 1;",
    "strides of the block": "mov.u32 %r7, %r2;\n$L:\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;\n"
    "add.s32 %r7, %r7, 64;\nsetp.lt.s32 %p1, %r7, 512;\n@%p1 bra $L;",
    "the counter of a grid": "atom.global.add.u32 %r7, [%rd2], 1;",
    "rounds with a barrier": "mov.u32 %r7, 0;\n$L:\nst.shared.u32 [%r6], %r7;\nbar.sync 0;\nld.shared.u32 %r8, [s+8];\nbar.sync 0;\n"
    "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;",
    "a copy that all have waited for": COPY + COMMIT + "cp.async.wait_group 0;\n" + SYNC + OTHER,
    "a copy that its thread reads": COPY + "cp.async.wait_all;\n" + OWN,
    "a group in flight": COPY
    + COMMIT
    + "cp.async.ca.shared.global [%r6+256], [%rd4], 4;\n"
    + COMMIT
    + "cp.async.wait_group 1;\n"
    + SYNC
    + OTHER
    + LAST,
    "copies of rounds": COUNTED.format("mad.lo.s32 %r8, %r7, 256, %r6;\ncp.async.ca.shared.global [%r8], [%rd4], 4;\n") + LAST,
    "stages that go round": TURNS.format(1, -1, 3),
    "stages of a pipeline": STAGES.format(1, "bar.sync 0;\n") + LAST,
    "an mbarrier behind its initialisation": INIT + SYNC + ARRIVE,
    "bulk copies side by side": BULK.format(512),
}
RACES = {
    "addresses whose upper half differs": NARROWED("mul.wide.u32 %rd6, %r2, 4;\nshl.b64 %rd6, %rd6, 32;\n", 32, "%r7", ""),
    "an address of 32 bits that two threads have": NARROWED("mul.wide.u32 %rd6, %r2, 4;\nand.b64 %rd6, %rd6, 124;\n", 32, "%r7", ""),
    "a store of threads that leave": STORE + LEAVE.format("X") + SYNC + BEHIND + "$X:",
    "a store behind a branch out of the kernel": LEAVE.format("T") + SYNC + BEHIND + "$T:\n" + STORE + "$X:",
    "a store of threads that leave a loop": "mov.u32 %r7, 0;\n$L:\n"
    + SYNC
    + OTHER.replace("%r7", "%r8")
    + "\nsetp.eq.s32 %p1, %r7, %r2;\n@%p1 bra $T;\n"
    + SYNC
    + "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p2, %r7, %r1;\n@%p2 bra $L;\nbra $X;\n$T:\n"
    + STORE
    + "$X:",
    **RACES_OF_PRODUCTS,
    "a read behind one of two barriers": ARMS(SYNC + OTHER, SYNC + STORE, ""),
    "a read before a barrier of the other arm": ARMS(SYNC + SYNC + OTHER, SYNC + STORE + SYNC + STORE, ""),
    "a store of an arm that launches leave": ARMS(NONE + SYNC + OTHER, NONE + SYNC + STORE, "$X:"),
    "a store of an arm that leaves": ARMS(SYNC + SYNC + OTHER, SYNC + STORE, ""),
    "a copy of a warp before a barrier and behind it": COPY + ALL + "cp.async.wait_all;\n" + NEAR,
    "permuted places that meet in the last round": PERMUTED(LAST_ROUND, ""),
    "a half of another thread's permuted place": PERMUTED("", OTHER_HALF),
    "a number that two shifts cut": "mov.u32 %r8, %r5;\ncvt.u64.u32 %rd5, %r8;\nshl.b64 %rd5, %rd5, 48;\nshr.s64 %rd5, %rd5, 46;\n"
    "add.s64 %rd5, %rd1, %rd5;\nst.global.u32 [%rd5], %r2;",
    "values of threads at one place": "st.shared.u32 [s], %r2;",
    "values of rounds at one place": COUNTED.format("st.shared.u32 [s], %r7;\n"),
    "a value that is loaded at one place": "ld.global.u32 %r7, [%rd4];\nst.shared.u32 [s], %r7;",
    "one value by two instructions": "setp.lt.u32 %p1, %r2, 8;\n@%p1 st.shared.u32 [s], 1;\n@!%p1 st.shared.u32 [s], 1;",
    "one value of two CTAs": "st.global.u32 [%rd1], 1;",
    "one value beside a load": "ld.shared.u32 %r7, [s];\nst.shared.u32 [s], 1;\nst.global.u32 [%rd4], %r7;",
    "places from two fields": FIELDS + "sub.s32 %r9, %r8, %r7;\nadd.s32 %r9, %r9, 1;\nmul.lo.s32 %r9, %r9, %r2;\n"
    "mad.lo.s32 %r9, %r9, 4, %r4;\nst.shared.u32 [%r9], %r2;",
    "loads of some use": HALF + "st.shared.u32 [%r6], %r7;",
    "loads of some use in another store": HALF + "add.s64 %rd7, %rd2, %rd3;\nsetp.eq.s32 %p2, %r2, 32;\n@%p2 st.global.u32 [%rd7], %r7;",
    "places beside one of each round": COUNTED.format("mad.wide.s32 %rd5, %r7, 4, %rd2;\nld.global.u32 %r8, [%rd5];\n" + SHIFTED),
    "bulk copies that overlap": BULK.format(256),
    "numbers below zero as zero": "sub.s32 %r8, %r2, 16;\nmin.relu.s32 %r9, %r8, 1000;\n" + PLACE,
    "a constant that wraps": "mov.u32 %r7, 65536;\nmul.lo.u32 %r7, %r7, %r7;\nadd.u32 %r7, %r7, 3;\nrem.u32 %r9, %r2, %r7;\n" + PLACE,
    "an address that wraps": "cvt.u64.u32 %rd5, %r5;\nshl.b64 %rd5, %rd5, 32;\nshl.b64 %rd5, %rd5, 32;\nadd.s64 %rd6, %rd1, %rd5;\n"
    "st.global.u32 [%rd6], 1;",
    "half of a number": "cvt.s16.s32 %rs1, %r5;\nmul.wide.s16 %r9, %rs1, 4;\ncvt.s64.s32 %rd5, %r9;\n"
    "add.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], 1;",
    "rounds that end where a number is met late": MET.format(1, "setp.ne.s32 %p1, %r7, 5;\n"),
    "rounds that step over a number": MET.format(2, "setp.ne.s32 %p1, %r7, 3;\n"),
    "rounds that may go on behind a number": MET.format(
        1, "setp.ne.s32 %p1, %r7, 4;\nsetp.lt.s32 %p2, %r7, %r1;\nor.pred %p1, %p1, %p2;\n"
    ),
    "a piece that reaches another CTA's": "mul.wide.s32 %rd5, %r3, 16;\nadd.s64 %rd5, %rd1, %rd5;\nsetp.ne.s32 %p1, %r2, 0;\n@%p1 bra $E;\n"
    + "".join(f"st.global.u32 [%rd5+{place}], 1;\n" for place in range(0, 20, 4))
    + "$E:",
    "a piece around a barrier of the warp": "mad.lo.s32 %r9, %r2, 4, %r6;\nst.shared.u32 [%r9], 1;\n"
    + ALL
    + "st.shared.u32 [%r9+4], 1;\nxor.b32 %r17, %r2, 16;\nmad.lo.s32 %r18, %r17, 8, %r4;\nld.shared.u32 %r19, [%r18+4];\n",
    "a barrier of the warp between two warps": STORE + ALL + FAR,
    "a barrier of the warp behind both": STORE + NEAR + ALL,
    "a barrier of the warp before both": ALL + STORE + NEAR,
    "a barrier of the warp in a node before both": ALL + "bra.uni $M;\n$M:\n" + STORE + NEAR,
    "a barrier of the warp on one path": STORE + "setp.lt.s32 %p1, %r1, 5;\n@%p1 bra $M;\n" + ALL + "$M:\n" + NEAR,
    "barriers of the warp in rounds, between two warps": COUNTED.format(STORE + ALL + FAR + ALL),
    "barriers of the warp in rounds, before both": COUNTED.format(ALL + STORE + NEAR + ALL),
    "barriers of the warp in rounds, behind a copy": COUNTED.format(COPY + ALL + NEAR + "cp.async.wait_all;\n" + ALL),
    "rounds of a warp beside those of another one": COUNTED.format("mad.lo.s32 %r17, %r7, 128, %r6;\nst.shared.u32 [%r17], 1;\n" + ALL),
    "a barrier of the warp in rounds": COUNTED.format(STORE + ALL + NEAR),
    "a barrier of the warp behind a copy": COPY + ALL + NEAR + "cp.async.wait_all;",
    "a copy that another thread waited for": COPY + COMMIT + "cp.async.wait_group 0;\n" + OTHER,
    "a copy behind a barrier": COPY + SYNC + OTHER + LAST,
    "a copy behind two barriers": COPY + SYNC + SYNC + OTHER + LAST,
    "a copy that its thread reads early": COPY + OWN + LAST,
    "a copy that its thread reads early behind a barrier": COPY + SYNC + OWN + LAST,
    "the last group": COPY + COMMIT + "cp.async.wait_group 1;\n" + SYNC + OTHER + LAST,
    "a copy without a group": COPY + "cp.async.wait_group 0;\n" + SYNC + OTHER + LAST,
    "a group with a guard": "setp.lt.s32 %p1, %r1, 9;\n"
    + COPY
    + COMMIT
    + "@%p1 "
    + COMMIT
    + "cp.async.wait_group 1;\n"
    + SYNC
    + OTHER
    + LAST,
    "a group of one path": "setp.lt.s32 %p1, %r1, 9;\n"
    + COPY
    + COMMIT
    + "@%p1 bra $E;\n"
    + COMMIT
    + "$E:\ncp.async.wait_group 1;\n"
    + SYNC
    + OTHER
    + LAST,
    "a wait with a guard": "setp.lt.s32 %p1, %r1, 9;\n" + COPY + "@%p1 cp.async.wait_all;\n" + SYNC + OTHER + LAST,
    "copies of rounds at one place behind a barrier": COUNTED.replace("%r7, %r1", "%r7, 3").format(COPY + COMMIT + SYNC) + LAST,
    "bulk stores of rounds to one place": COUNTED.replace("%r7, %r1", "%r7, 3").format(STORED(256, FILLED, READ, SYNC))
    + "\n"
    + BULK_WAIT(0),
    "copies of rounds at one place": COUNTED.format(COPY) + LAST,
    "a neighbour's element of another round": COUNTED.format(
        "mad.lo.s32 %r8, %r7, 256, %r6;\nst.shared.u32 [%r8], 1;\nld.shared.u32 %r8, [%r6+2308];\nbar.sync 0;\n"
    ),
    "stages that go round and meet": TURNS.format(1, 1, 3),
    "stages that go round at another speed": TURNS.format(1, 0, 4),
    "stages that meet in the first round": TURNS.format(-1, -1, 3),
    "a stage that is read while it is filled": STAGES.format(1, "") + LAST,
    "a stage that is not complete": STAGES.format(2, "bar.sync 0;\n") + LAST,
    "a source that is overwritten": COPY + "st.global.u32 [%rd4], 1;" + LAST,
    "a source that another CTA writes": "cp.async.ca.shared.global [%r6], [%rd1], 4;\n"
    + LAST
    + "\nsetp.ne.s32 %p1, %r3, 0;\n@%p1 st.global.u32 [%rd4+-256], 1;",
    "rows of a matrix in a warp": "mad.lo.s32 %r6, %r2, 16, %r4;\nst.shared.v4.u32 [%r6], {%r2, %r2, %r2, %r2};\n"
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r8, %r9, %r10}, [%r6];",
    "bits that two large numbers share": MERGED((1 << 13) + (1 << 14)),
    "words of rows that another lane gets": OWN_ROWS(4, STORED_WORDS, ".trans"),
    "halves of rows that another lane gets": OWN_ROWS(4, OWN_HALF("st.shared.u16 [%r9+32], %rs1;"), ".trans"),
    "words of rows, and a byte of the next one": OWN_ROWS(4, "st.shared.u8 [%r9+4], %r2;", ""),
    "a row that one instruction stores twice": "and.b32 %r7, %r2, 23;\nand.b32 %r8, %r2, 32;\nadd.s32 %r7, %r7, %r8;\n"
    + ROWS.format("%r7"),
    "rows in rounds that part lanes": FURTHER("%r2", "%r2", 40),
    "a copied word of a row that a lane gets": "setp.ne.u32 %p1, %r2, 0;\nsetp.lt.u32 %p2, %r2, 32;\nand.pred %p1, %p1, %p2;\n"
    "@%p1 cp.async.ca.shared.global [%r6], [%rd4], 4;\nmad.lo.s32 %r6, %r2, 16, %r4;\n"
    "@%p2 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r6];" + LAST,
    "a condition of the round before": AHEAD.format(SMALLER(2, 0, 2), SMALLER(9, 0, 2)),
    "a condition that the first round is without": AHEAD.format("setp.lt.s32 %p2, %r2, 64;\n", SMALLER(9, 64, 2)),
    "a condition that two rounds are without": AHEAD.format(
        SMALLER(2, 0, 2) + "setp.lt.s32 %p3, %r2, 64;\n", "mov.pred %p2, %p3;\n" + SMALLER(9, 128, 3)
    ),
    "an element behind that of the next round": ELEMENTS.format(2),
    "rows of threads that may be empty": OWN_ROW.format("setp.eq.s32 %p2, %r1, %r1;\n"),
    "a bulk store without a proxy fence": STORED(256, STORE + SYNC, DONE, ""),
    "a bulk store of what others write without a proxy fence": STORED(256, "setp.ne.u32 %p2, %r2, 0;\n@%p2 " + STORE + SYNC, DONE, ""),
    "a bulk store behind a fence of the other memory": STORED(256, STORE + "fence.proxy.async.global;\n" + SYNC, DONE, ""),
    "a bulk store behind a fence of some threads": STORED(256, STORE + "setp.lt.u32 %p2, %r2, 32;\n@%p2 " + FENCE + SYNC, DONE, ""),
    "a bulk store before the fence of its thread": "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra $M;\n"
    + STORE
    + "cp.async.bulk.global.shared::cta.bulk_group [%rd4], [s], 16;\n"
    + FENCE
    + DONE
    + "$M:\n",
    "a bulk store of what a copy brings behind the fence": STORED(256, COPY + FENCE + "cp.async.wait_all;\n" + SYNC, DONE, ""),
    "a bulk store that still reads": STORED(256, FILLED, BULK_COMMIT + BULK_WAIT(1), AGAIN + BULK_WAIT(0)),
    "a bulk store without a group": STORED(256, FILLED, BULK_WAIT(0), AGAIN + DONE),
    "a bulk store in no group of its kind": STORED(256, FILLED, COMMIT + BULK_WAIT(0), AGAIN + DONE),
    "a bulk store that no wait of its kind is for": STORED(256, FILLED, BULK_COMMIT + "cp.async.wait_all;\n", AGAIN + BULK_WAIT(0)),
    "a bulk store that its thread loads back too early": STORED(256, FILLED, READ + "ld.global.u32 %r7, [%rd5];\n", BULK_WAIT(0)),
    "bulk stores of two CTAs": STORED(128, FILLED, DONE, ""),
    "rows of a matrix that two warps store": "and.b32 %r7, %r2, 31;\n" + ROWS.format("%r7"),
    "rows of a matrix that two lanes store": "shr.u32 %r7, %r2, 1;\n" + ROWS.format("%r7"),
    "rows of a matrix that two lanes store in rounds": COUNTED.format("add.s32 %r8, %r2, %r7;\n" + ROWS.format("%r8")),
    "a neighbour's element": "st.shared.u32 [%r6], 1;\nld.shared.u32 %r7, [%r6+4];",
    "a half of a neighbour's element": "xor.b32 %r7, %r2, 1;\nmad.lo.s32 %r8, %r7, 4, %r4;\n"
    "st.shared.u16 [%r8+2], 1;\nld.shared.u32 %r7, [%r6];",
    "a neighbour's copy behind a barrier": COPY + SYNC + "cp.async.wait_all;\nld.shared.u32 %r7, [%r6+4];",
    "an element of the next CTA": "st.global.u32 [%rd4], 1;\nld.global.u32 %r7, [%rd4+256];",
    "a load of an own element that sees no writes": "st.global.u32 [%rd4], 1;\nbar.sync 0;\nld.global.nc.u32 %r7, [%rd4];",
    "the last one of some rounds": "mov.u32 %r7, 0;\n$L:\nadd.s32 %r9, %r7, 1;\nsetp.lt.s32 %p1, %r9, %r1;\nsetp.ge.s32 %p2, %r7, 1;\n"
    "not.pred %p3, %p1;\nand.pred %p3, %p3, %p2;\nselp.b32 %r8, %r4, %r6, %p3;\nst.shared.u32 [%r8], 1;\nmov.u32 %r7, %r9;\n@%p1 bra $L;",
    "an mbarrier beside its initialisation": INIT + ARRIVE,
    "a bit as another mask": "bfe.s32 %r7, %r2, 5, 1;\nand.b32 %r7, %r7, 8;\nand.b32 %r8, %r2, 31;\nmad.lo.s32 %r7, %r8, 8, %r7;\n"
    "add.s32 %r8, %r7, %r4;\nst.shared.u32 [%r8], 1;",
    "a number in two parts, without a bit": HALVES.format(32),
    "the last bit of a number of more bits": "add.s32 %r7, %r1, %r2;\ncvt.s64.s32 %rd5, %r7;\n"
    "and.b64 %rd5, %rd5, 1;\nshl.b64 %rd5, %rd5, 2;\nadd.s64 %rd5, %rd4, %rd5;\nst.global.u32 [%rd5], 1;",
    "numbers whose bits meet, one of more bits": WIDENED.format(32),
    "numbers whose bits meet": "shl.b32 %r7, %r3, 5;\nor.b32 %r7, %r7, %r2;\nmul.wide.s32 %rd5, %r7, 4;\nadd.s64 %rd5, %rd1, %rd5;\n"
    "st.global.u32 [%rd5], 1;",
    "bits that are set": "or.b32 %r7, %r2, 1;\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;",
    "one element of all": "st.global.u32 [%rd2], 1;",
    "elements of two CTAs": "mad.lo.s32 %r7, %r3, 32, %r2;\n"
    "mul.wide.s32 %rd5, %r7, 4;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], 1;",
    "no barrier": "st.shared.u32 [%r6], 1;\nld.shared.u32 %r7, [s];",
    "a barrier of another number": "st.shared.u32 [%r6], 1;\nbar.sync 1;\nld.shared.u32 %r7, [s];",
    "a barrier of lanes": "st.shared.u32 [%r6], 1;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r7, [s];",
    "half of the bytes": "shl.b32 %r7, %r2, 1;\nadd.s32 %r8, %r4, %r7;\nst.shared.u16 [%r8], 1;\nld.shared.u32 %r10, [%r6];",
    "rounds of one thread beside those of another one": "mov.u32 %r7, 0;\n$L:\nadd.s32 %r8, %r2, %r7;\nmad.lo.s32 %r9, %r8, 4, %r4;\n"
    "st.shared.u32 [%r9], 1;\nadd.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;",
    "a load that sees no writes": "st.global.u32 [%rd4], 1;\nbar.sync 0;\nld.global.nc.u32 %r7, [%rd1];",
    "an atomic of the CTA": "atom.cta.global.add.u32 %r7, [%rd2], 1;",
    "a volatile load beside a store": "ld.volatile.shared.u32 %r7, [s];\nst.shared.u32 [s], %r7;",
    "an atomic of two halves beside one of a word": "red.global.add.noftz.f16x2 [%rd2], %r2;\nred.global.add.u32 [%rd2], 1;",
    "an atomic beside a store": "atom.global.add.u32 %r7, [%rd2], 1;\nst.global.u32 [%rd2], 1;",
    "one strong word beside a strong vector": "mul.wide.s32 %rd5, %r2, 8;\nadd.s64 %rd6, %rd2, %rd5;\n"
    "st.relaxed.gpu.global.v2.u32 [%rd6], {%r2, %r2};\nld.relaxed.gpu.global.u64 %rd7, [%rd2];",
    "the next round": "mov.u32 %r7, 0;\n$L:\nst.shared.u32 [%r6], %r7;\nbar.sync 0;\nld.shared.u32 %r8, [s+8];\n"
    "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra $L;",
    "a stride of half a block": "mov.u32 %r7, %r2;\n$L:\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;\n"
    "add.s32 %r7, %r7, 32;\nsetp.lt.s32 %p1, %r7, 512;\n@%p1 bra $L;",
    "an index that is loaded": "ld.global.u32 %r7, [%rd4];\nand.b32 %r7, %r7, 1023;\nmad.lo.s32 %r8, %r7, 4, %r4;\nst.shared.u32 [%r8], 1;",
}
# A product that wraps, as in a hash. By 24 bits no two threads of a CTA have one place, which the solver may find; by 28 bits some have.
HASHED = "mul.lo.s32 %r7, %r5, -1640531535;\nshr.u32 %r8, %r7, {};\nmad.lo.s32 %r8, %r8, 4, %r4;\nst.shared.u32 [%r8], 1;"
UNKNOWN = {
    "an address of 16 bits of 64": NARROWED("mul.wide.u32 %rd6, %r2, 4;\n", 16, "%rs1", "cvt.u32.u16 %r7, %rs1;\n"),
    "an operand behind its variable": product("", END_PRODUCT.format(0), b=8192 - 128),
    "an operand that its variable's alignment does not place": product("", END_PRODUCT.format(0), at="s", cut="mov.u32 %r21, %r20;\n"),
    "bits of an address that its variable's alignment does not give": product(
        "", END_PRODUCT.format(0), at="q+256", cut=CUT.format(261888)
    ),
    "a bulk store that may read when the CTA has ended": STORED(256, FILLED, BULK_COMMIT, ""),
    "a descriptor with one bit twice": product("or.b64 %rd20, %rd20, 68719476736;\n", END_PRODUCT.format(0)),
    "barriers of several arms, beside one that leaves": "and.b32 %r7, %r2, 3;\n$T: .branchtargets $A, $B, $X, $X;\nbrx.idx %r7, $T;\n$A:\n"
    + SYNC
    + "$B:\n"
    + STORE
    + SYNC
    + "ld.shared.u32 %r8, [s+252];\n$X:",
    "a function that stores": CALL + FUNCTION.format("st.global.u32 [%rd1], %r1;\n"),
    "a function that loads where the kernel writes": CALL + "st.global.u32 [%rd4], %r7;" + FUNCTION_LOADS,
    "a function with a barrier": CALL + FUNCTION.format("bar.sync 0;\n"),
    "a function that calls another one": CALL + FUNCTION.format("call g;\n"),
    "a function without a text": "call g;",
    "a returned number as a place": CALL + "mad.wide.s32 %rd6, %r7, 4, %rd1;\nst.global.u32 [%rd6], 1;" + ONLY,
    "a barrier behind a returned number": CALL + BEHIND_CALL + ONLY,
    "a result with the name of a parameter": CALLED.format("n", "ld.param.b32 %r7, [n];") + BEHIND_CALL + ONLY,
    "a result by its address": CALLED.format("back", "mov.b32 %r8, back;\nld.param.b32 %r7, [%r8];") + BEHIND_CALL + ONLY,
    "a barrier of half a warp": STORE + "bar.warp.sync 65535;\n" + NEAR,
    "barriers of the warp in rounds, one of half a warp": COUNTED.format(STORE + "bar.warp.sync 65535;\n" + NEAR + ALL),
    "barriers of the warp in rounds, with a guard": COUNTED.format("setp.lt.s32 %p2, %r1, 5;\n" + STORE + "@%p2 " + ALL + NEAR + ALL),
    "barriers of the warp in rounds of a thread": "mov.u32 %r7, %r2;\n$L:\n"
    + STORE
    + ALL
    + NEAR
    + ALL
    + "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, 99;\n@%p1 bra $L;",
    "a barrier of the warp that some lanes meet before": "setp.lt.s32 %p2, %r2, 8;\n@%p2 " + ALL + STORE + ALL + NEAR,
    "a barrier of half a warp in rounds": FIRST_WARP(16, COUNTED.format(STORE + ALL + "ld.shared.u32 %r19, [%r6+4];\n" + ALL)),
    "a barrier of the warp with a guard": "setp.lt.s32 %p1, %r1, 5;\n" + STORE + "@%p1 " + ALL + NEAR,
    "a barrier of the warp that some threads reach": STORE + "setp.lt.s32 %p1, %r2, 8;\n@%p1 bra $M;\n" + ALL + "$M:\n" + ALL + NEAR,
    "a barrier of some threads": "setp.lt.s32 %p1, %r2, 16;\n@%p1 bra $L;\nbar.sync 0;\n$L:\nbar.sync 0;",
    "a barrier in rounds of a thread": "mov.u32 %r7, %r2;\n$L:\n"
    + SYNC
    + "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, 99;\n@%p1 bra $L;\n"
    + SYNC,
    "a copy that nobody waits for": "cp.async.ca.shared.global [%r6], [%rd4], 4;",
    "a copy in flight through many barriers": COPY + "bar.sync 0;\n" * 14 + "cp.async.wait_all;",
    "a bulk copy": "cp.async.bulk.prefetch.L2.global [%rd4], 16;",
    "a barrier behind a loaded flag": "add.s64 %rd5, %rd2, %rd3;\nld.global.u32 %r7, [%rd5];\n" + FLAG,
    "a barrier behind a flag in an array that is written": "ld.global.u32 %r7, [%rd1+-4];\nst.global.u32 [%rd4], 1;\n" + FLAG,
    "code behind an overflow": "add.s32 %r7, %r1, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 st.global.u32 [%rd2], 1;",
    "a barrier with a guard": "setp.lt.s32 %p1, %r1, 32;\n@%p1 bar.sync 0;",
    "an arrival": "bar.arrive 0, 64;",
    "a pointer from memory": "ld.global.u64 %rd5, [%rd4];\nst.global.u32 [%rd5], 1;",
    "an array that is left": "mad.lo.s32 %r7, %r1, 4, %r6;\n.shared .align 4 .b8 t[64];\nst.shared.u32 [%r7], 1;\nld.shared.u32 %r8, [t];",
}
