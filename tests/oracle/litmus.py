"""Litmus tests of global memory: programs of a few threads, and which variables race, derived from the PTX ISA by hand.

An operation is `W d` (a weak store of 1), `R d` (a weak load), an opcode of ld, st, atom or red with a variable and a value, a fence, `bar`
(bar.sync 0) or `warp` (bar.warp.sync). `spin` repeats a read until it gives at least the value. `.global` and `.u32` are added; `:u64` and
the like give another type, `d+4` another place in a variable. A thread's number is CTA.thread, in clusters of `cluster` CTAs.

What a test expects is said of the execution in which each `spin` has seen what it waits for: a kind for each variable that races, of the
pair with the worst one. Every other variable must be silent. A race that is a warning only, or one of `--policy isa` only, is said so.
What else a chip may let come first, or a read see, must not change it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

RACE, GLOBAL, SCOPE, WARNING, ISA = "data-race", "global-race", "scope", "warning", "isa"
WORST = (GLOBAL, RACE, SCOPE, WARNING)  # of several pairs on a variable, the first of these that one has
HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {cluster}
{{
  .reg .pred %p<4>; .reg .b32 %r<8>, %home, %number; .reg .b64 %a, %v<4>; .reg .f32 %f<2>;
  ld.param.u64 %a, [out];
  cvta.to.global.u64 %a, %a;
  mov.u32 %home, %ctaid.x;
  mov.u32 %number, %tid.x;
"""
_OPERATION = re.compile(r"(?P<spin>spin )?(?P<opcode>[\w.]+)(:(?P<type>[\w.]+))? (?P<name>[a-z])(?P<offset>\+\d+)?( (?P<value>\d+))?$")
_SHORT = {"W": "st", "R": "ld", "Rnc": "ld.nc", "bar": "bar.sync 0", "warp": "bar.warp.sync 0xffffffff"}
STRIDE = 64  # bytes of a variable


@dataclass(frozen=True)
class Litmus:
    """One test. `threads` maps CTA.thread to its program; `rule` is that of SEMANTICS which decides it."""

    name: str
    rule: str
    threads: dict[str, str]
    races: dict[str, str] = field(default_factory=dict)
    cluster: int = 1

    @property
    def grid(self) -> int:
        """CTAs."""
        ctas = 1 + max(int(who.split(".")[0]) for who in self.threads)
        return -(-ctas // self.cluster) * self.cluster

    @property
    def block(self) -> int:
        """Threads of a CTA."""
        return 1 + max(int(who.split(".")[1]) for who in self.threads)

    def ptx(self) -> tuple[str, dict[int, str]]:
        """The kernel, and which variable each of its lines accesses."""
        cluster = f".explicitcluster .reqnctapercluster {self.cluster}, 1, 1" if self.cluster > 1 else ""
        lines, names = HEAD.format(cluster=cluster).splitlines(), {}
        for number, who in enumerate(self.threads):
            cta, thread = who.split(".")
            lines += [f"  setp.eq.u32 %p1, %home, {cta};", f"  setp.eq.and.u32 %p1, %number, {thread}, %p1;", f"  @%p1 bra T{number};"]
        lines.append("  ret;")
        for number, program in enumerate(self.threads.values()):
            lines.append(f"T{number}:")
            for step, text in enumerate(part.strip() for part in program.split(";") if part.strip()):
                for line, name in _translated(text, f"L{number}_{step}"):
                    lines.append(f"  {line}")
                    if name:
                        names[len(lines)] = name
            lines.append("  ret;")
        return "\n".join([*lines, "}"]) + "\n", names


def _translated(text: str, label: str) -> list[tuple[str, str]]:
    """The lines of an operation, each with the variable that it accesses."""
    found = _OPERATION.match(text)
    if found is None:
        return [(_SHORT.get(text, text) + ";", "")]
    name, kind = found["name"], found["type"] or "u32"
    place = f"[%a+{(ord(name) - ord('a')) * STRIDE + int(found['offset'] or 0)}]"
    words = _SHORT.get(found["opcode"], found["opcode"]).split(".")
    action = words[0]
    vector = kind.split(".")[0] if kind.startswith("v") else ""
    wide = kind.endswith("64")
    register, value = ("%v1" if wide else "%r1"), found["value"] or "1"
    registers = f"{{{', '.join(f'%r{k + 1}' for k in range(int(vector[1:])))}}}" if vector else register
    if action in ("atom", "red"):
        opcode = ".".join((*words[:-1], "global", words[-1], kind))
        operands = f"{register}, {place}, {value}" if action == "atom" else f"{place}, {value}"
    elif action == "ld":
        nc = ["nc"] if "nc" in words else []
        opcode = ".".join((action, *(word for word in words[1:] if word != "nc"), "global", *nc, kind))
        operands = f"{registers}, {place}"
    else:
        opcode, operands = ".".join((*words, "global", kind)), f"{place}, {registers if vector else value}"
    lines = [(f"{opcode} {operands};", name)]
    if found["spin"]:
        test = f"setp.lt.u{64 if wide else 32} %p2, {register}, {value};"
        lines = [(f"{label}:", ""), *lines, (test, ""), (f"@%p2 bra {label};", "")]
        if action == "atom":
            lines[1] = (f"{opcode} {register}, {place}, 0;", name)
    return lines


def _between(name: str, rule: str, writer: str, reader: str, *races: str, **more: str) -> Litmus:
    """Two threads of two CTAs; a variable that is named races between them."""
    return Litmus(name, rule, {"0.0": writer, "1.0": reader}, {**dict.fromkeys(races, GLOBAL), **more})


_RELEASE, _ACQUIRE = "W d; st.release.gpu f 1", "spin ld.acquire.gpu f 1; R d"
_FENCED, _FENCED_READ = "W d; fence.acq_rel.gpu; st.relaxed.gpu f 1", "spin ld.relaxed.gpu f 1; fence.acq_rel.gpu; R d"

STRENGTHS = [
    _between("weak_store_and_load", "R-GM1", "W d", "R d", "d"),
    _between("weak_loads", "R-GM1", "R d", "R d"),
    _between("relaxed_store_and_load", "R-GM1", "st.relaxed.gpu d 1", "ld.relaxed.gpu d"),
    _between("relaxed_store_beside_weak_load", "R-GM1", "st.relaxed.gpu d 1", "R d", "d"),
    _between("cache_hints_are_weak", "R-GM1", "st.cg d 1", "ld.cv d", "d"),
    _between("volatile_is_strong", "R-GM1", "st.volatile d 1", "ld.volatile d"),
    _between("volatile_and_relaxed_of_the_device", "R-GM1", "st.volatile d 1", "ld.relaxed.gpu d"),
    _between("atomics", "R-GM1", "red.relaxed.gpu.add d 1", "atom.relaxed.gpu.add d 1"),
    _between("atomic_beside_weak_load", "R-GM1", "red.relaxed.gpu.add d 1", "R d", "d"),
    _between("atomic_beside_relaxed_load", "R-GM1", "red.relaxed.gpu.add d 1", "ld.relaxed.gpu d"),
    _between("atomics_of_two_sizes", "R-GM1", "red.relaxed.gpu.add:u64 d 1", "red.relaxed.gpu.add d 1", d=WARNING),
    _between("relaxed_halves_of_a_word", "R-GM1", "st.relaxed.gpu:u16 d 1", "ld.relaxed.gpu d", "d"),
    _between("bytes_beside_each_other", "R-GM1", "st:u8 d 1", "ld:u8 d+1"),
    _between("atomics_of_a_cta", "R-GM1", "red.relaxed.cta.add d 1", "red.relaxed.gpu.add d 1", d=SCOPE),
    _between("relaxed_store_of_a_cta", "R-GM1", "st.relaxed.cta d 1", "ld.relaxed.gpu d", d=SCOPE),
    Litmus("atomics_of_one_cta", "R-GM1", {"0.0": "red.relaxed.cta.add d 1", "0.32": "red.relaxed.cta.add d 1"}),
    Litmus("atomics_of_one_cluster", "R-GM1", {"0.0": "red.relaxed.cluster.add d 1", "1.0": "red.relaxed.cluster.add d 1"}, cluster=2),
    Litmus("atomics_of_a_cta_in_a_cluster", "R-GM1", {"0.0": "red.relaxed.cta.add d 1", "1.0": "red.relaxed.cta.add d 1"}, {"d": SCOPE}, 2),
    Litmus("weak_within_a_cta", "R-GM1", {"0.0": "W d", "0.32": "R d"}, {"d": RACE}),
    Litmus("weak_within_a_warp", "R-GM1", {"0.0": "W d", "0.1": "R d"}, {"d": RACE}),
    _between("same_value", "R-GM1", "W d", "W d", d=WARNING),
    _between("two_values", "R-GM1", "W d", "st d 2", "d"),
    _between("relaxed_vectors", "R-GM10", "st.relaxed.gpu:v2.u32 d", "ld.relaxed.gpu:v2.u32 d"),
    _between("relaxed_vector_beside_its_element", "R-GM10", "st.relaxed.gpu:v2.u32 d", "ld.relaxed.gpu d+4"),
    _between("relaxed_vector_beside_a_double_word", "R-GM10", "st.relaxed.gpu:v2.u32 d", "ld.relaxed.gpu:u64 d", "d"),
]

MESSAGES = [
    _between("mp_operations", "R-GM2", _RELEASE, _ACQUIRE),
    _between("mp_fences", "R-GM2", _FENCED, _FENCED_READ),
    _between("mp_sc_fences", "R-GM2", _FENCED.replace("acq_rel", "sc"), _FENCED_READ.replace("acq_rel", "sc")),
    _between("mp_membar", "R-GM2", "W d; membar.gl; st.volatile f 1", "spin ld.volatile f 1; membar.gl; R d"),
    _between("mp_fence_to_acquire", "R-GM2", _FENCED, _ACQUIRE),
    _between("mp_release_to_fence", "R-GM2", _RELEASE, _FENCED_READ),
    _between("mp_release_and_acquire_fences", "R-GM2", _FENCED.replace("acq_rel", "release"), _FENCED_READ.replace("acq_rel", "acquire")),
    _between("mp_wrong_fences", "R-GM2", _FENCED.replace("acq_rel", "acquire"), _FENCED_READ, "d"),
    _between("mp_wrong_fence_of_the_reader", "R-GM2", _FENCED, _FENCED_READ.replace("acq_rel", "release"), "d"),
    _between("mp_no_release", "R-GM2", "W d; st.relaxed.gpu f 1", _ACQUIRE, "d"),
    _between("mp_no_acquire", "R-GM2", _RELEASE, "spin ld.relaxed.gpu f 1; R d", "d"),
    _between("mp_volatile_alone", "R-GM2", "W d; st.volatile f 1", "spin ld.volatile f 1; R d", "d"),
    _between("mp_fence_after_the_flag", "R-GM2", "W d; st.relaxed.gpu f 1; fence.acq_rel.gpu", _ACQUIRE, "d"),
    _between("mp_fence_before_the_poll", "R-GM2", _RELEASE, "fence.acq_rel.gpu; spin ld.relaxed.gpu f 1; R d", "d"),
    _between("mp_store_after_release", "R-GM2", "st.release.gpu f 1; W d", _ACQUIRE, "d"),
    _between("mp_weak_flag", "R-GM2", "W d; fence.acq_rel.gpu; W f", "spin ld.volatile f 1; fence.acq_rel.gpu; R d", "d", "f"),
    _between("mp_weak_poll", "R-GM2", _RELEASE, "spin ld f 1; fence.acq_rel.gpu; R d", "d", "f"),
    _between("mp_flag_of_another_size", "R-GM2", "W d; st.release.gpu:u64 f 1", _ACQUIRE, "d", "f"),
    _between("mp_another_flag", "R-GM2", "W d; st.release.gpu f 1; st.relaxed.gpu g 1", "spin ld.acquire.gpu g 1; R d", "d"),
    _between("mp_acquire_on_another_word", "R-GM2", _RELEASE, "spin ld.relaxed.gpu f 1; ld.acquire.gpu g; R d", "d"),
    _between("mp_acquire_on_the_same_word", "R-GM2", _RELEASE, "spin ld.relaxed.gpu f 1; ld.acquire.gpu f; R d"),
    _between("mp_release_then_relaxed_store", "R-GM2", "W d; st.release.gpu f 1; st.relaxed.gpu f 2", "spin ld.acquire.gpu f 2; R d"),
    _between("mp_atomic_flag", "R-GM2", "W d; atom.release.gpu.add f 1", "spin atom.acquire.gpu.or:b32 f 1; R d"),
    _between("mp_red_flag", "R-GM2", "W d; red.release.gpu.add f 1", _ACQUIRE),
    _between("mp_red_then_fence", "R-GM2", _RELEASE + "; st.relaxed.gpu g 1",
             "spin ld.relaxed.gpu g 1; red.relaxed.gpu.add f 1; fence.acquire.gpu; R d", "d"),
    _between("mp_value_and_flag_in_one_word", "R-GM10", "st.relaxed.gpu:u64 d 1", "spin ld.relaxed.gpu:u64 d 1"),
    _between("mp_backwards", "R-GM2", "R d; st.release.gpu f 1", "spin ld.acquire.gpu f 1; W d"),
    _between("mp_backwards_relaxed", "R-GM2", "R d; st.relaxed.gpu f 1", "spin ld.relaxed.gpu f 1; W d", "d"),
]  # fmt: skip

SCOPES = [
    _between("mp_release_of_a_cta", "R-GM3", _RELEASE.replace("gpu", "cta"), _ACQUIRE, d=SCOPE, f=SCOPE),
    _between("mp_acquire_of_a_cta", "R-GM3", _RELEASE, _ACQUIRE.replace("gpu", "cta"), d=SCOPE, f=SCOPE),
    _between("mp_narrow_fence", "R-GM3", _FENCED.replace("acq_rel.gpu", "acq_rel.cta"), _FENCED_READ, d=SCOPE),
    _between("mp_narrow_fence_of_the_reader", "R-GM3", _FENCED, _FENCED_READ.replace("acq_rel.gpu", "acq_rel.cta"), d=SCOPE),
    _between("mp_narrow_flag", "R-GM3", _FENCED.replace("relaxed.gpu", "relaxed.cta"), _FENCED_READ, d=SCOPE, f=SCOPE),
    _between("mp_membar_cta", "R-GM3", "W d; membar.cta; st.volatile f 1", "spin ld.volatile f 1; membar.gl; R d", d=SCOPE),
    _between("mp_cluster_scope", "R-GM3", _RELEASE.replace("gpu", "cluster"), _ACQUIRE, d=SCOPE, f=SCOPE),
    Litmus("mp_cluster_scope_in_a_cluster", "R-GM3", {"0.0": _RELEASE.replace("gpu", "cluster"), "1.0": _ACQUIRE}, cluster=2),
    Litmus("mp_cta_scope_in_a_cta", "R-GM3", {"0.0": _RELEASE.replace("gpu", "cta"), "0.32": _ACQUIRE.replace("gpu", "cta")}),
    Litmus(
        "mp_wide_fence_after_narrow_one", "R-GM3", {"0.0": "W d; fence.acq_rel.gpu; fence.acq_rel.cta; st.relaxed.gpu f 1", "1.0": _ACQUIRE}
    ),
    _between(
        "mp_written_after_the_wide_fence", "R-GM3", "fence.acq_rel.gpu; W d; fence.acq_rel.cta; st.relaxed.gpu f 1", _ACQUIRE, d=SCOPE
    ),
]  # fmt: skip

_ACQUIRE_LAST = "spin ld.relaxed.gpu g 1; spin ld.acquire.gpu f 2; R d"  # `g`: so that no poll sees an earlier value, which would count

CHAINS = [
    Litmus("chain_through_an_atomic", "R-GM4", {"0.0": _RELEASE, "1.0": "spin ld.relaxed.gpu f 1; atom.relaxed.gpu.add f 1",
           "2.0": "spin ld.acquire.gpu f 2; R d"}),
    Litmus("chain_through_a_red", "R-GM4", {"0.0": _RELEASE, "1.0": "spin ld.relaxed.gpu f 1; red.relaxed.gpu.add f 1",
           "2.0": "spin ld.acquire.gpu f 2; R d"}),
    Litmus("chain_ended_by_a_store", "R-GM4", {"0.0": _RELEASE, "1.0": "spin ld.relaxed.gpu f 1; st.relaxed.gpu f 2; st.relaxed.gpu g 1",
           "2.0": _ACQUIRE_LAST}, {"d": GLOBAL}),
    Litmus("chain_ended_by_a_weak_store", "R-GM4", {"0.0": _RELEASE, "1.0": "spin ld.acquire.gpu f 1; st f 2; st.relaxed.gpu g 1",
           "2.0": _ACQUIRE_LAST}, {"d": GLOBAL, "f": GLOBAL}),
    Litmus("chain_through_an_atomic_of_a_cta", "R-GM4", {"0.0": _RELEASE,
           "1.0": "spin ld.relaxed.gpu f 1; atom.relaxed.cta.add f 1; st.relaxed.gpu g 1",
           "2.0": _ACQUIRE_LAST}, {"d": SCOPE, "f": SCOPE}),
    Litmus("chain_seen_before_its_end", "R-GM4", {"0.0": _RELEASE,
           "1.0": "spin ld.relaxed.gpu f 1; spin ld.relaxed.gpu g 1; st.relaxed.gpu f 2",
           "2.0": "spin ld.acquire.gpu f 1; st.relaxed.gpu g 1; spin ld.acquire.gpu f 2; R d"}),
    Litmus("chain_of_releases", "R-GM4", {"0.0": "W d; red.release.gpu.add f 1", "1.0": "W e; red.release.gpu.add f 1",
           "2.0": "spin ld.acquire.gpu f 2; R d; R e"}),
    Litmus("chain_with_a_relaxed_member", "R-GM4", {"0.0": "W d; red.release.gpu.add f 1", "1.0": "W e; red.relaxed.gpu.add f 1",
           "2.0": "spin ld.acquire.gpu f 2; R d; R e"}, {"e": GLOBAL}),
]  # fmt: skip

CUMULATIVITY = [
    Litmus("wrc", "R-GM5", {"0.0": _RELEASE, "1.0": "spin ld.acquire.gpu f 1; st.release.gpu g 1", "2.0": "spin ld.acquire.gpu g 1; R d"}),
    Litmus("wrc_middle_relaxed", "R-GM5", {"0.0": _RELEASE, "1.0": "spin ld.relaxed.gpu f 1; st.release.gpu g 1",
           "2.0": "spin ld.acquire.gpu g 1; R d"}, {"d": GLOBAL}),
    Litmus("wrc_middle_releases_by_cta", "R-GM5", {"0.0": _RELEASE, "1.0": "spin ld.acquire.gpu f 1; fence.acq_rel.cta; st.relaxed.gpu g 1",
           "2.0": "spin ld.acquire.gpu g 1; R d"}, {"d": SCOPE}),
    Litmus("isa2", "R-GM5", {"0.0": _FENCED,
           "1.0": "spin ld.relaxed.gpu f 1; fence.acq_rel.gpu; W e; fence.acq_rel.gpu; st.relaxed.gpu g 1",
           "2.0": "spin ld.relaxed.gpu g 1; fence.acq_rel.gpu; R d; R e"}),
    Litmus("iriw", "R-GM5", {"0.0": _RELEASE, "1.0": "W e; st.release.gpu g 1",
           "2.0": "spin ld.acquire.gpu f 1; spin ld.acquire.gpu g 1; R d; R e",
           "3.0": "spin ld.acquire.gpu g 1; spin ld.acquire.gpu f 1; R e; R d"}),
    Litmus("iriw_one_relaxed", "R-GM5", {"0.0": _RELEASE, "1.0": "W e; st.release.gpu g 1",
           "2.0": "spin ld.relaxed.gpu f 1; spin ld.acquire.gpu g 1; R d; R e",
           "3.0": "spin ld.acquire.gpu g 1; spin ld.relaxed.gpu f 1; R e"}, {"d": GLOBAL}),
    Litmus("iriw_one_fence_for_both", "R-GM5", {"0.0": _RELEASE, "1.0": "W e; st.release.gpu g 1",
           "2.0": "spin ld.relaxed.gpu f 1; spin ld.relaxed.gpu g 1; fence.acquire.gpu; R d; R e"}),
    Litmus("barrier_then_fence_of_one", "R-GM5", {"0.0": "W d; bar", "0.32": "bar; fence.acq_rel.gpu; st.relaxed.gpu f 1",
           "1.0": _ACQUIRE}),
    Litmus("barrier_then_release_of_one", "R-GM5", {"0.0": "W d; bar", "0.32": "bar; st.release.gpu f 1", "1.0": _ACQUIRE}),
    Litmus("no_barrier_before_the_release", "R-GM5", {"0.0": "W d", "0.32": "st.release.gpu f 1", "1.0": _ACQUIRE}, {"d": GLOBAL}),
    Litmus("barrier_then_relaxed_flag", "R-GM5", {"0.0": "W d; bar", "0.32": "bar; st.relaxed.gpu f 1", "1.0": _ACQUIRE}, {"d": GLOBAL}),
    Litmus("acquire_then_barrier", "R-GM9", {"0.0": _RELEASE, "1.0": "spin ld.acquire.gpu f 1; bar", "1.32": "bar; R d"}),
    Litmus("relaxed_then_barrier", "R-GM2", {"0.0": _RELEASE, "1.0": "spin ld.relaxed.gpu f 1; bar", "1.32": "bar; R d"}, {"d": GLOBAL}),
    Litmus("acquire_of_another_warp", "R-GM9", {"0.0": _RELEASE, "1.0": "spin ld.acquire.gpu f 1", "1.32": "spin ld.relaxed.gpu f 1; R d"},
           {"d": GLOBAL}),
    Litmus("acquire_of_another_lane", "R-GM9", {"0.0": _RELEASE, "1.0": "spin ld.acquire.gpu f 1; st.relaxed.gpu g 1",
           "1.1": "spin ld.relaxed.gpu g 1; R d"}, {"d": GLOBAL}),
]  # fmt: skip

_ALL_SC = {"0.0": "W d; fence.sc.gpu; bar", "0.32": "fence.sc.gpu; bar; st.relaxed.gpu f 1"}

SC_FENCES = [
    Litmus("all_fence_then_barrier_sc", "R-GM6", {**_ALL_SC,
           "1.0": "spin ld.relaxed.gpu f 1; fence.sc.gpu; R d"}),
    Litmus("all_membar_then_barrier", "R-GM6", {"0.0": "W d; membar.gl; bar", "0.32": "membar.gl; bar; st.volatile f 1",
           "1.0": "spin ld.volatile f 1; membar.gl; R d"}),
    Litmus("all_fence_then_barrier_acq_rel", "R-GM6", {
           "0.0": "W d; fence.acq_rel.gpu; bar", "0.32": "fence.acq_rel.gpu; bar; st.relaxed.gpu f 1",
           "1.0": "spin ld.relaxed.gpu f 1; fence.acq_rel.gpu; R d"}, {"d": ISA}),
    Litmus("all_fence_sc_but_reader", "R-GM6", {**_ALL_SC,
           "1.0": "spin ld.relaxed.gpu f 1; fence.acq_rel.gpu; R d"}, {"d": ISA}),
    Litmus("all_fence_sc_reader_acquires", "R-GM6", {**_ALL_SC,
           "1.0": _ACQUIRE}, {"d": ISA}),
    Litmus("all_fence_sc_reader_acquires_another_word", "R-GM6", {**_ALL_SC,
           "1.0": "spin ld.relaxed.gpu f 1; ld.acquire.gpu g; R d"}, {"d": GLOBAL}),
    Litmus("all_fence_sc_of_a_cta", "R-GM6", {"0.0": "W d; fence.sc.cta; bar", "0.32": "fence.sc.gpu; bar; st.relaxed.gpu f 1",
           "1.0": "spin ld.relaxed.gpu f 1; fence.sc.gpu; R d"}, {"d": SCOPE}),
    Litmus("all_fence_sc_then_an_atomic_chain", "R-GM6", {
           "0.0": "W d; fence.sc.gpu; bar", "0.32": "fence.sc.gpu; bar; atom.relaxed.gpu.add f 1",
           "1.0": "spin ld.relaxed.gpu f 1; atom.relaxed.gpu.add f 1", "2.0": "spin ld.relaxed.gpu f 2; fence.sc.gpu; R d"}),
    Litmus("fence_sc_before_what_another_has_acquired", "R-GM6", {"0.0": "W d; fence.sc.gpu; st.relaxed.gpu f 1",
           "1.0": "spin ld.acquire.gpu f 1; st.relaxed.gpu g 1", "2.0": "spin ld.relaxed.gpu g 1; fence.sc.gpu; R d"}),
    Litmus("fence_sc_before_what_another_has_read", "R-GM6", {"0.0": "W d; fence.sc.gpu; st.relaxed.gpu f 1",
           "1.0": "spin ld.relaxed.gpu f 1; st.relaxed.gpu g 1", "2.0": "spin ld.relaxed.gpu g 1; fence.sc.gpu; R d"}, {"d": GLOBAL}),
    Litmus("fence_sc_of_one_who_has_acquired", "R-GM6", {"0.0": _RELEASE,
           "1.0": "spin ld.acquire.gpu f 1; fence.sc.gpu; bar", "1.32": "bar; st.relaxed.gpu g 1",
           "2.0": "spin ld.relaxed.gpu g 1; fence.sc.gpu; R d"}),
    Litmus("written_after_the_fence_sc", "R-GM6", {"0.0": "fence.sc.gpu; W d; st.release.gpu f 1",
           "1.0": "spin ld.acquire.gpu f 1; st.relaxed.gpu g 1", "2.0": "spin ld.relaxed.gpu g 1; fence.sc.gpu; R d"}, {"d": GLOBAL}),
    Litmus("reader_fences_after_its_barrier", "R-GM6", {"0.0": "W d; fence.sc.gpu; bar", "0.32": "bar; st.relaxed.gpu f 1",
           "1.0": "spin ld.relaxed.gpu f 1; bar", "1.32": "bar; fence.sc.gpu; R d"}),
    _between("sb_weak", "R-GM7", "W x; fence.sc.gpu; R y", "W y; fence.sc.gpu; R x", "x", "y"),
    _between("sb_relaxed", "R-GM7", "st.relaxed.gpu x 1; fence.sc.gpu; ld.relaxed.gpu y",
             "st.relaxed.gpu y 1; fence.sc.gpu; ld.relaxed.gpu x"),
    _between("sb_one_relaxed_word", "R-GM7", "W x; fence.sc.gpu; ld.relaxed.gpu y", "st.relaxed.gpu y 1; fence.sc.gpu; R x", "x"),
    _between("lb_weak", "R-GM1", "R x; fence.sc.gpu; W y", "R y; fence.sc.gpu; W x", "x", "y"),
    _between("lb_relaxed", "R-GM1", "ld.relaxed.gpu x; st.relaxed.gpu y 1", "ld.relaxed.gpu y; st.relaxed.gpu x 1"),
    _between("two_plus_two_writes", "R-GM1", "W x; fence.sc.gpu; st y 2", "W y; fence.sc.gpu; st x 2", "x", "y"),
    _between("two_plus_two_relaxed_writes", "R-GM1", "st.relaxed.gpu x 1; st.relaxed.gpu y 2", "st.relaxed.gpu y 1; st.relaxed.gpu x 2"),
    _between("r", "R-GM7", "W x; st.release.gpu y 1", "st.relaxed.gpu y 2; fence.sc.gpu; R x", "x"),
    _between("s", "R-GM2", "st d 2; st.release.gpu f 1", "spin ld.acquire.gpu f 1; W d"),
    _between("s_relaxed", "R-GM2", "st d 2; st.release.gpu f 1", "spin ld.relaxed.gpu f 1; W d", "d"),
]  # fmt: skip

SEEN = [
    Litmus("last_resets_the_counter", "R-GM8", {"0.0": "atom.relaxed.gpu.add f 1", "1.0": "spin atom.relaxed.gpu.or:b32 f 1; st f 0"}),
    Litmus("reset_without_having_seen", "R-GM8", {"0.0": "atom.relaxed.gpu.add f 1", "1.0": "st f 7"}, {"f": GLOBAL}),
    Litmus("reset_after_a_chain", "R-GM8", {"0.0": "atom.relaxed.gpu.add f 1", "1.0": "atom.relaxed.gpu.add f 1",
           "2.0": "spin ld.relaxed.gpu f 2; st f 0"}),
    Litmus("seen_then_told", "R-GM8", {"0.0": "st.relaxed.gpu d 1", "1.0": "spin ld.relaxed.gpu d 1; st.release.gpu g 1",
           "2.0": "spin ld.acquire.gpu g 1; R d"}),
    Litmus("seen_says_nothing_of_other_words", "R-GM8", {
           "0.0": "W d; atom.relaxed.gpu.add f 1", "1.0": "spin ld.relaxed.gpu f 1; st f 0; R d"}, {"d": GLOBAL}),
    Litmus("seen_by_a_red", "R-GM8", {"0.0": "st.relaxed.gpu f 1; st.relaxed.gpu g 1",
           "1.0": "spin ld.relaxed.gpu g 1; red.relaxed.gpu.add f 1; R f"}, {"f": GLOBAL}),
    Litmus("a_look_comes_not_behind_itself", "R-GM8", {"0.0": "red.relaxed.cta.add f 1; red.relaxed.gpu.add f 1; st.relaxed.gpu g 1",
           "1.0": "spin ld.relaxed.gpu g 1; ld.relaxed.gpu f"}, {"f": SCOPE}),
]  # fmt: skip

READ_ONLY = [
    _between("nc_beside_a_write", "R-GM13", "W d", "Rnc d", "d"),
    _between("nc_beside_a_read", "R-GM13", "R d", "Rnc d"),
    _between("nc_after_an_acquire", "R-GM13", _RELEASE, _ACQUIRE.replace("R d", "Rnc d"), "d"),
    _between("nc_beside_other_bytes", "R-GM13", "W d", "Rnc d+4"),
    Litmus("nc_after_a_barrier", "R-GM13", {"0.0": "W d; bar", "0.32": "bar; Rnc d"}, {"d": RACE}),
    Litmus("nc_after_the_own_write", "R-GM13", {"0.0": "W d; Rnc d"}, {"d": RACE}),
    Litmus("nc_before_the_own_write", "R-GM13", {"0.0": "Rnc d; W d"}, {"d": WARNING}),
]

LITMUS = [*STRENGTHS, *MESSAGES, *SCOPES, *CHAINS, *CUMULATIVITY, *SC_FENCES, *SEEN, *READ_ONLY]
