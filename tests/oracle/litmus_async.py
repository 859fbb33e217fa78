"""Litmus tests of mbarriers, proxies and asynchronous operations: straight programs of a few warps in a cluster of two CTAs.

A thread is lane 0 of a warp, and its name CTA.warp. A variable `a` to `d` is 16 bytes of shared memory of its CTA, `a@1` that of CTA 1; `g`
and `h` are 16 bytes of global memory. An mbarrier `m` or `n` has one phase. Operations:

    W a, R a            a weak store or load of 4 bytes         add a          red.relaxed.cluster
    put a@1 m           st.async, signals m of that CTA         inc a@1 m      red.async
    load a g m          cp.async.bulk from global memory        store g a      the same to it: `commit`, `done` (wait_group), `read` (.read)
    push b@1 a m        cp.async.bulk to the other CTA          sum g a        cp.reduce.async.bulk to global memory
    expect m 16         arrive.expect_tx                        arrive m       arrive.release.cluster (`arrive.relaxed m@1`)
    wait m              try_wait.acquire.cluster (`wait.cta`, `wait.relaxed`)  fence   fence.proxy.async
    bar                 bar.sync 0                              cl             barrier.cluster arrive and wait (`cl.relaxed`)

All variables are set and published to both proxies before. `races` is what ISA 8.6 to 8.9 say of each variable, derived by hand; `isa` what
the strict reading adds, as a warning (D1, D4, D5).
"""

from __future__ import annotations

from dataclasses import dataclass, field

RACE, WAIT, PROXY, SCOPE = "data-race", "missing-wait", "missing-proxy-fence", "scope"
SHARED, GLOBAL, MBARRIERS = "abcd", "gh", "mn"
_HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data) .explicitcluster .reqnctapercluster 2, 1, 1
{
  .reg .pred %p, %first, %q; .reg .b32 %r<8>, %home, %number, %lane, %team; .reg .b64 %d, %s;
  .shared .align 16 .b8 box[64];
  .shared .align 8 .b64 bars[2];
  ld.param.u64 %d, [data];
  cvta.to.global.u64 %d, %d;
  mov.u32 %home, %cluster_ctarank;
  mov.u32 %number, %tid.x;
  and.b32 %lane, %number, 31;
  shr.u32 %team, %number, 5;
  setp.eq.u32 %first, %lane, 0;
"""
_CLUSTER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
_WAITS = {"wait": "acquire.cluster", "wait.cta": "acquire.cta", "wait.relaxed": "relaxed.cluster"}
_PLAIN = {
    "commit": "cp.async.bulk.commit_group;", "done": "cp.async.bulk.wait_group 0;", "read": "cp.async.bulk.wait_group.read 0;",
    "fence": "fence.proxy.async;",
}  # fmt: skip
_TOGETHER = {
    "bar": "bar.sync 0;", "cl": _CLUSTER, "cl.relaxed": "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;",
}  # fmt: skip


@dataclass(frozen=True)
class AsyncLitmus:
    """One test. `threads` maps CTA.warp to its program; `rule` of SEMANTICS decides it; `counts` of mbarriers, 1 if left out."""

    name: str
    rule: str
    threads: dict[str, str]
    races: dict[str, str] = field(default_factory=dict)
    isa: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def programs(self) -> dict[tuple[int, int], list[str]]:
        """The operations of each thread, by CTA and warp."""
        parts = {who: [step.strip() for step in program.split(";")] for who, program in self.threads.items()}
        return {(int(who.split(".")[0]), int(who.split(".")[1])): steps for who, steps in parts.items()}

    @property
    def block(self) -> int:
        """Threads of a CTA."""
        return 32 * (1 + max(warp for _, warp in self.programs))

    def ptx(self) -> tuple[str, dict[int, str]]:
        """The kernel, and the operation of each of its lines."""
        lines, names = _HEAD.splitlines(), {}
        lines += ["  setp.ne.u32 %p, %number, 0;", "  @%p bra START;"]
        lines += [f"  mov.u32 %r1, 0; st.shared.v4.u32 [box+{16 * k}], {{%r1, %r1, %r1, %r1}};" for k in range(4)]
        for k, name in enumerate(MBARRIERS):
            lines.append(f"  mbarrier.init.shared::cta.b64 [bars+{8 * k}], {self.counts.get(name, 1)};")
        lines += [
            "  fence.mbarrier_init.release.cluster;",
            "  fence.proxy.async;",
            "START:",
            "  bar.warp.sync 0xffffffff;",
            f"  {_CLUSTER}",
        ]
        for number, (rank, warp) in enumerate(self.programs):
            lines += [f"  setp.eq.u32 %p, %home, {rank};", f"  setp.eq.and.u32 %p, %team, {warp}, %p;", f"  @%p bra T{number};"]
        lines.append("  ret;")
        for number, ((rank, _), steps) in enumerate(self.programs.items()):
            lines.append(f"T{number}:")
            for k, step in enumerate(steps):
                lines += ["  bar.warp.sync 0xffffffff;", *_lines(step, rank, f"L{number}_{k}")]
                names[len(lines)] = step
            lines += ["  bar.warp.sync 0xffffffff;", f"  {_TOGETHER['cl.relaxed']}", "  ret;"]
        return "\n".join([*lines, "}"]) + "\n", names


def variable(word: str, rank: int) -> tuple[str, int]:
    """What a word of a program names: a variable or an mbarrier, and its CTA; global memory has none (-1)."""
    name, _, there = word.partition("@")
    return name, -1 if name in GLOBAL else int(there) if there else rank


def _address(word: str, rank: int, register: str) -> tuple[list[str], str]:
    """The lines that bring the address of a word into a register, and the operand."""
    name, home = variable(word, rank)
    if name in GLOBAL:
        return [], f"[%d+{16 * GLOBAL.index(name)}]"
    base = f"bars+{8 * MBARRIERS.index(name)}" if name in MBARRIERS else f"box+{16 * SHARED.index(name)}"
    return [f"  mov.u32 {register}, {base}; mapa.shared::cluster.u32 {register}, {register}, {home};"], f"[{register}]"


def _lines(step: str, rank: int, label: str) -> list[str]:
    """The lines of an operation; the last one accesses or orders."""
    action, *words = step.split()
    if action in _TOGETHER:
        return [f"  {_TOGETHER[action]}"]
    if action in _PLAIN:
        return [f"  @%first {_PLAIN[action]}"]
    if action in _WAITS:
        place = f"[bars+{8 * MBARRIERS.index(words[0])}]"
        head = [f"  @!%first bra {label}E;", f"{label}:"]
        test = f"mbarrier.try_wait.parity.{_WAITS[action]}.shared::cta.b64 %q, {place}, 0;"
        return [*head, f"  {test}", f"  @!%q bra {label};", f"{label}E:"]
    count = [words.pop()] if action == "expect" else []
    lines, operands = [], []
    for k, word in enumerate(words):
        more, operand = _address(word, rank, f"%r{k + 1}")
        lines, operands = lines + more, operands + [operand]
    return [*lines, "  @%first " + _instruction(action, variable(words[0], rank)[0] in GLOBAL, operands + count)]


def _instruction(action: str, global_races: bool, operands: list[str]) -> str:
    bulk, mbarrier, space = "cp.async.bulk", "mbarrier::complete_tx::bytes", "global" if global_races else "shared::cluster"
    first, second, third = [*operands, "", ""][:3]
    return {
        "W": f"st.{space}.u32 {first}, 1;",
        "R": f"ld.{space}.u32 %r7, {first};",
        "add": f"red.relaxed.cluster.{space}.add.u32 {first}, 1;",
        "put": f"st.async.shared::cluster.{mbarrier}.u32 {first}, 1, {second};",
        "inc": f"red.async.relaxed.cluster.shared::cluster.{mbarrier}.add.u32 {first}, 1, {second};",
        "load": f"{bulk}.shared::cluster.global.{mbarrier} {first}, {second}, 16, {third};",
        "push": f"{bulk}.shared::cluster.shared::cta.{mbarrier} {first}, {second}, 16, {third};",
        "store": f"{bulk}.global.shared::cta.bulk_group {first}, {second}, 16;",
        "sum": f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 {first}, {second}, 16;",
        "expect": f"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, {first}, {second};",
        "arrive": f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, {first};",
        "arrive.relaxed": f"mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, {first};",
    }[action]


def _one(
    name: str, rule: str, one: str, other: str, counts: dict[str, int] | None = None, isa: dict[str, str] | None = None, **races: str
) -> AsyncLitmus:
    """Two threads: of one CTA unless one of them names the other's memory by `@`; those of a cluster are 0.0 and 1.0."""
    far = "@" in one + other or "cl" in one
    return AsyncLitmus(name, rule, {"0.0": one, ("1.0" if far else "0.1"): other}, races, isa or {}, counts or {})


TESTS = [
    # mbarriers: release and acquire (R-M10, D11)
    _one("arrive_and_wait", "R-M10", "W a; arrive m", "wait m; R a"),
    _one("arrive_relaxed", "R-M10", "W a; arrive.relaxed m", "wait m; R a", a=RACE),
    _one("wait_relaxed", "R-M10", "W a; arrive m", "wait.relaxed m; R a", a=RACE),
    _one("access_behind_arrival", "R-M10", "arrive m; W a", "wait m; R a", a=RACE),
    _one("arrive_there", "R-M9", "W a@1; arrive m@1", "wait m; R a"),
    _one("arrive_there_wait_cta", "R-M9", "W a@1; arrive m@1", "wait.cta m; R a", a=SCOPE),
    # copies into shared memory (R-B1, R-RACE)
    _one("load_and_wait", "R-B1", "expect m 16; load a g m", "wait m; R a"),
    _one("load_wait_relaxed", "R-B1", "expect m 16; load a g m", "wait.relaxed m; R a", a=WAIT),
    _one("load_not_waited", "R-B1", "expect m 16; load a g m; R a; wait m", "R b", a=WAIT),
    _one("load_behind_barrier", "R-B1", "expect m 16; load a g m; bar; wait m", "bar; R a", a=WAIT),
    _one("load_other_barrier", "R-B1", "expect m 16; load a g m; arrive n; wait m", "wait n; R a", a=WAIT),
    _one("load_beside_write", "R-RACE", "expect m 16; load a g m; wait m", "W a", a=RACE),
    _one("write_behind_wait", "R-RACE", "expect m 16; load a g m", "wait m; W a"),
    _one("write_then_load", "R-PX", "expect m 16; load a g m; wait m", "W b; R b"),
    _one("loads_overlap", "R-RACE", "expect m 32; load a g m; load a h m; wait m", "R b", a=WAIT),
    _one("load_is_not_transitive", "4", "W b; expect m 16; load a g m", "wait m; R b"),
    _one("issuer_arrives_before", "4", "expect m 16; W b; load a g m", "wait m; R b", b=RACE),
    # proxies (R-PX, D1)
    _one("write_bar_load", "R-PX", "bar; expect m 16; load a g m; wait m", "W a; bar", a=PROXY),
    _one("write_fence_bar_load", "R-PX", "bar; expect m 16; load a g m; wait m", "W a; fence; bar"),
    _one("read_bar_load", "D1", "bar; expect m 16; load a g m; wait m", "R a; bar", isa={"a": PROXY}),
    _one("read_fence_bar_load", "D1", "bar; expect m 16; load a g m; wait m", "R a; fence; bar"),
    _one("load_wait_write", "R-PX", "expect m 16; load a g m; wait m; W a; R a", "R b"),
    _one("write_store", "R-PX", "W a; store g a; commit; done", "R b", a=PROXY),
    _one("write_fence_store", "R-PX", "W a; fence; store g a; commit; done", "R b"),
    _one("global_write_load", "R-GM12", "W g; expect m 16; load a g m; wait m", "R b", g=PROXY),
    _one("global_write_fence_load", "R-GM12", "W g; fence; expect m 16; load a g m; wait m", "R b"),
    _one("global_write_sum", "R-GM12", "W g; sum g a; commit; done", "R b", g=PROXY),
    _one("global_write_fence_sum", "R-GM12", "W g; fence; sum g a; commit; done", "R b"),
    # groups (R-B2, R-B3, R-GM11)
    _one("source_not_read", "R-B2", "store g a; commit; W a; done", "R b", a=WAIT),
    _one("source_read", "R-B2", "store g a; commit; read; W a; done", "R b"),
    _one("source_beside_write", "R-B2", "store g a; commit; done", "W a", a=RACE),
    _one("result_after_read", "R-B3", "store g a; commit; read; R g; done", "R b", g=WAIT),
    _one("result_done", "R-B3", "store g a; commit; done; R g", "R b"),
    _one("result_bar", "R-B3", "store g a; commit; done; bar", "bar; R g"),
    _one("result_bar_not_done", "R-B3", "store g a; commit; bar; done", "bar; R g", g=WAIT),
    _one("stores_overlap", "R-GM11", "store g a; commit; done", "store g b; commit; done", g=RACE),
    _one("sums_overlap", "R-GM11", "sum g a; commit; done", "sum g b; commit; done"),
    _one("sum_beside_store", "R-GM11", "sum g a; commit; done", "store g b; commit; done", g=RACE),
    # between CTAs: st.async, red.async, copies (R-RACE, D4, D5)
    _one("put_and_wait", "R-B1", "put a@1 m@1", "expect m 4; wait m; R a"),
    _one("put_wait_cta", "D5", "put a@1 m@1", "expect m 4; wait.cta m; R a", isa={"a": SCOPE}),
    _one("put_wait_relaxed", "R-B1", "put a@1 m@1", "expect m 4; wait.relaxed m; R a", a=WAIT),
    _one("put_cluster_barrier", "R-B1", "put a@1 m@1; cl", "expect m 4; cl; R a; wait m", a=WAIT),
    _one("put_beside_write", "R-RACE", "put a@1 m@1", "expect m 4; W a; wait m", a=RACE),
    _one("write_cluster_barrier_put", "R-RACE", "cl; put a@1 m@1", "expect m 4; W a; cl; wait m"),
    _one("puts_overlap", "R-RACE", "put a@1 m@1; put a@1 m@1", "expect m 8; wait m", a=WAIT),
    _one("inc_beside_inc", "R-RACE", "inc a@1 m@1; inc a@1 m@1", "expect m 8; wait m; R a"),
    _one("inc_beside_add", "R-RACE", "inc a@1 m@1", "expect m 4; add a; wait m; R a"),
    _one("inc_beside_put", "R-RACE", "inc a@1 m@1; put a@1 m@1", "expect m 8; wait m", a=WAIT),
    _one("put_then_store", "R-PX", "put a@1 m@1", "expect m 4; wait m; store g a; commit; done", a=PROXY),
    _one("put_fence_store", "R-PX", "put a@1 m@1", "expect m 4; wait m; fence; store g a; commit; done"),
    _one("push_and_wait", "R-B1", "push b@1 a m@1", "expect m 16; wait m; R b"),
    _one("push_wait_cta", "D5", "push b@1 a m@1", "expect m 16; wait.cta m; R b", isa={"b": SCOPE}),
    _one("push_source", "R-RACE", "push b@1 a m@1; cl", "expect m 16; cl; W a@0; wait m", a=WAIT),
    _one("push_source_waited", "R-RACE", "push b@1 a m@1", "expect m 16; wait m; W a@0"),
    _one("push_then_store", "D4", "push b@1 a m@1", "expect m 16; wait m; store g b; commit; done", isa={"b": PROXY}),
    _one("push_fence_store", "D4", "push b@1 a m@1", "expect m 16; wait m; fence; store g b; commit; done"),
    _one("store_then_peer_loads", "D4", "store g a; commit; done; cl", "cl; expect m 16; load a g m; wait m", isa={"g": PROXY}),
    _one("store_fence_peer_loads", "D4", "store g a; commit; done; fence; cl", "cl; expect m 16; load a g m; wait m"),
]  # fmt: skip
