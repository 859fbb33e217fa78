"""Damaged PTX through the whole pipeline: parsed, given hooks, run on the virtual machine.

Whatever is done to a text, the end is a verdict, or one error that names a place; never a crash, never a hang. And what an assembler
refuses is not judged: `clean` for a text that no GPU runs would be a wrong answer.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults_support import ARGS, CLEAN, HEAD, LAUNCH, MODULE, RACY, SPIN, TRAP, check, consan
from hypothesis import given, settings, strategies as st

import consan as package
from consan._errors import ConsanError, ExitCode, UsageError
from consan.launching.source import read_module
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain import assemble, find

needs_assembler = pytest.mark.skipif(not (find.locate(find.NVJITLINK) or find.ptxas()), reason="no assembler is installed")

# One of each kind of instruction that has hooks, and calls of functions, in few lines.
RICH = """
.func (.param .b32 result) twice(.param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [value];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry rich(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  .shared .align 16 .b8 tile[1024];
  .shared .align 8 .b64 bars[2];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [bars], 64;
  bar.sync 0;
  mov.u32 %r2, tile;
  mad.lo.u32 %r3, %r1, 16, %r2;
  cp.async.ca.shared.global [%r3], [%rd1], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  mbarrier.arrive.shared.b64 %rd2, [bars];
WAIT:
  mbarrier.try_wait.shared.b64 %p2, [bars], %rd2;
  @!%p2 bra WAIT;
  st.shared.u32 [%r3+4], %r1;
  atom.shared.add.u32 %r4, [%r3+4], 1;
  st.shared.v2.b32 [%r3+8], {%r1, %r4};
  barrier.sync 1, 64;
  ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r3];
  shfl.sync.bfly.b32 %r9, %r8, 1, 31, -1;
  {
    .param .b32 argument;
    .param .b32 answer;
    st.param.b32 [argument], %r9;
    call.uni (answer), twice, (argument);
    ld.param.b32 %r10, [answer];
  }
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd1, %rd3;
  st.global.u32 [%rd4], %r10;
  fence.acq_rel.cta;
  ret;
}
"""
BASES = {"clean": CLEAN, "racy": RACY, "spin": SPIN, "ends_in_trap": TRAP, "rich": RICH}
TOKEN = re.compile(r"[%.]?[\w$]+(?:\.[\w:]+)*|\S")
WORDS = sorted({token for base in BASES.values() for token in TOKEN.findall(base)})
NUMBERS = [
    "0",
    "1",
    "-1",
    "3",
    "255",
    "65536",
    "4294967295",
    "-2147483648",
    "0x7fffffffffffffff",
    "99999999999",
    "1.5",
    "0d7FF0000000000000",
]
MODIFIERS = sorted({part for word in WORDS for part in word.split(".")[1:] if part})


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, str]:
    """A kernel's name, and a module in which a few words are gone, doubled, exchanged or cut off."""
    name = draw(st.sampled_from(sorted(BASES)))
    text = BASES[name]
    for _ in range(draw(st.integers(1, 3))):
        tokens = list(TOKEN.finditer(text))
        if not tokens:
            break
        token = tokens[draw(st.integers(0, len(tokens) - 1))]
        words = draw(st.sampled_from(["gone", "doubled", "another", "number", "modifier", "line", "end"]))
        text = (
            text[: token.start()] + _damage(draw, words, token[0]) + text[token.end() :]
            if words not in ("line", "end")
            else _cut(text, words, token)
        )
    return name, HEAD + text + "\n"


def _damage(draw: st.DrawFn, how: str, word: str) -> str:
    if how == "gone":
        return ""
    if how == "doubled":
        return f"{word} {word}"
    if how == "number":
        return draw(st.sampled_from(NUMBERS))
    if how == "modifier" and "." in word:
        parts = word.split(".")
        parts[draw(st.integers(0, len(parts) - 1))] = draw(st.sampled_from(MODIFIERS))
        return ".".join(parts)
    return draw(st.sampled_from(WORDS))


def _cut(text: str, how: str, token: re.Match[str]) -> str:
    if how == "end":
        return text[: token.start()]
    begin, end = text.rfind("\n", 0, token.start()), text.find("\n", token.end())
    return text[: begin + 1] + text[end:] if end >= 0 else text[: begin + 1]


def run(name: str, text: str, seconds: float = 1.0) -> str:
    """The verdict; a session with little room, so that one example costs little."""
    session = Session(SessionOptions(device="cpu", shadow_memory=4 << 20, timeout=seconds), private=True)
    try:
        kernel = package.Kernel(text, name)
        values = [np.zeros(64, np.uint32), 5][: len(kernel.function.params)]
        prepared = session.prepare(kernel.ptx, name="k.ptx")
        with _placed(session, values, [parameter.nbytes for parameter in kernel.function.params]) as data:
            session.launch(prepared, name, (1, 1, 1), (64, 1, 1), data)
            report = session.report()
        assert str(report)
        assert report.to_json()
        return report.verdict
    finally:
        session.close()


@contextlib.contextmanager
def _placed(session: Session, values: list[Any], sizes: list[int]) -> Iterator[list[bytes]]:
    address = session.backend.alloc(256)
    numbers = [address if isinstance(value, np.ndarray) else value for value in values]
    numbers += [0] * (len(sizes) - len(numbers))
    yield [(number & (1 << 8 * size) - 1).to_bytes(size, "little") for number, size in zip(numbers, sizes, strict=True)]
    session.backend.free(address)


def outcome(name: str, text: str) -> str:
    """A verdict, or "refused"; any other end is the failure of the test."""
    try:
        return run(name, text)
    except ConsanError as error:
        told = error
    assert told.exit_code is ExitCode.USAGE, told
    assert "\n" not in str(told)
    return "refused"


def damage_is_survived(example: tuple[str, str]) -> None:
    """With nobody to ask: what consan itself makes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "why_broken", lambda *_, **__: None)
        outcome(*example)


@pytest.mark.parametrize("name", BASES)
def test_the_kernels_are_what_they_should_be(name: str) -> None:
    expected = {"clean": "clean", "racy": "violations", "spin": "violations", "ends_in_trap": "violations", "rich": "clean"}
    assert run(name, HEAD + BASES[name], 1.0 if name == "spin" else 60.0) == expected[name]


@settings(max_examples=120, deadline=None)
@given(damaged())
def test_damaged_text_never_crashes_consan(example: tuple[str, str]) -> None:
    damage_is_survived(example)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=10_000, deadline=None)
@given(damaged())
def test_ten_thousand_damaged_texts_never_crash_consan(example: tuple[str, str]) -> None:
    damage_is_survived(example)


@needs_assembler
@settings(max_examples=12, deadline=None)
@given(damaged())
def test_what_no_assembler_takes_is_refused(example: tuple[str, str]) -> None:
    refused_like_the_assembler(example)


@needs_assembler
@pytest.mark.parametrize(
    ("instruction", "wrong", "allowed"),
    [
        ("tcgen05.mma.cta_group::1.kind::f32 [%r1], %rd1, %rd1, %r1, %p1;", ".kind::f32", ".kind::i8, .kind::f16, .kind::tf32"),
        ("tcgen05.ld.sync.aligned.32x64b.x1.b32 {%r2}, [%r1];", ".32x64b", ".16x64b, .32x32b, .16x128b, .16x256b, .16x32bx2"),
    ],
)
def test_a_refusal_names_what_is_allowed(instruction: str, wrong: str, allowed: str) -> None:
    registers = ".reg .pred %p1;\n.reg .b32 %r<3>;\n.reg .b64 %rd1;"
    text = f".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n{registers}\n{instruction}\nret;\n}}\n"
    with pytest.raises(UsageError, match=re.escape(f"; in place of {wrong} are allowed: {allowed}")):
        read_module(text, "k.ptx")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@needs_assembler
@settings(max_examples=2000, deadline=None)
@given(damaged())
def test_what_no_assembler_takes_is_refused_in_two_thousand_texts(example: tuple[str, str]) -> None:
    refused_like_the_assembler(example)


def refused_like_the_assembler(example: tuple[str, str]) -> None:
    """An independent opinion: the whole assembler, optimising, in a process of its own."""
    name, text = example
    if outcome(name, text) != "refused":
        line, count, reason = assemble._first_error_elsewhere(text, "sm_90")
        assert not count, (line, reason)


def test_every_truncation_of_a_file_is_refused_with_its_place() -> None:
    """Cut within the last kernel, so that the one that is asked for is whole: still no file for anybody."""
    text, refused = HEAD + CLEAN + RICH, 0
    for end in range(len(HEAD + CLEAN), len(text.rstrip()), 23):
        Path("cut.ptx").write_text(text[:end])
        done = check("clean", file="cut.ptx")
        if done.status != 0:
            refused += 1
            assert re.match(r"cut\.ptx:\d+:\d+: ", done.refused())
    assert refused > 40


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ("ld.shared.u32 %r5;", r"k\.ptx:21:3: the operands of 'ld.shared.u32' are not dst, \[addr\]"),
        ("ld.shared.u32 %r5, %r4, %r4, %r4;", r"k\.ptx:21:3: the operands of 'ld.shared.u32' are not"),
        ("st.shared.u32 [%r4], [%r4], %r5;", r"k\.ptx:21:3: the operands of 'st.shared.u32' are not"),
        ("bar.sync;", r"k\.ptx:21:3: the operands of 'bar.sync' are not barrier"),
        ("membar.cta %r1;", r"k\.ptx:21:3: the operands of 'membar.cta' are not no operands"),
        ("bra;", r"k\.ptx:21:3: the operands of 'bra' are not label"),
        ("call;", r"k\.ptx:21:3: the operands of 'call' are not"),
        ("ld.param.u32 %r1, n, 4;", r"k\.ptx:21:3: the operands of 'ld.param.u32' are not"),
        ("cp.async.wait_group;", r"k\.ptx:21:3: the operands of 'cp.async.wait_group' are not"),
        ("cp.async.wait_group 0d7FF0000000000000;", "does not execute 'cp.async.wait_group 0d7FF0000000000000;' \\(line 21 of the PTX\\)"),
        ("setp.ge.u32 %r5, [%r4];", r"does not execute 'setp.ge.u32 %r5, \[%r4\];' \(line 21 of the PTX\): 2 operands, 3 expected"),
        ("mov.u32 %r5, {%r1, %r2, %r3};", r"line 21 of the PTX\): its operands are not those of the form"),
        ("bra 5;", "line 21 of the PTX"),
        ("brx.idx %r5, 5;", r"line 21 of the PTX\): its operands are not those of the form"),
        ("frobnicate.u32 %r5, %r4;", "does not execute 'frobnicate.u32 %r5, %r4;'"),
        ("mov.u32 %r5, nowhere;", "unknown name nowhere"),
    ],
)
def test_what_consan_itself_says_of_wrong_statements(instead: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "why_broken", lambda *_, **__: None)
    Path("k.ptx").write_text((HEAD + CLEAN).replace("ld.shared.u32 %r5, [%r4];", instead))
    assert re.search(message, check("clean").refused())


def test_a_count_that_is_no_whole_number_is_not_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "why_broken", lambda *_, **__: None)
    Path("k.ptx").write_text((HEAD + CLEAN).replace("bar.sync 0;", "barrier.sync 1, 0d7FF0000000000000;"))
    done = check("clean", "--strict")
    assert (done.status, done.crashed) == (66, False)
    assert "error[deadlock]" in done.out  # the virtual machine takes the bits of the nearest float, a multiple of 32 that never comes
    assert "1 launch of clean could not be recorded: operand 0d7FF0000000000000" in done.out


@needs_assembler
@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ("mov.u32 %r5, %rd1;", "k.ptx:21:3: Arguments mismatch for instruction 'mov'"),
        ("bar.sync 99;", "k.ptx:21:12: Barrier number '99' out of range, expected to be in range [0..15]"),
        ("ld.shared.u32 %r5, [4];", "k.ptx:21:3: Immediate addresses allowed only for .local state space"),
        ("frobnicate.u32 %r5, %r4;", "k.ptx:21:3: Not a name of any known instruction: 'frobnicate'"),
        ("mov.u32 %r5, nowhere;\n  mov.u32 %r4, %rd1;", "k.ptx:21:3: Arguments mismatch for instruction 'mov' (and 2 more)"),
    ],
)
def test_what_the_assembler_refuses_is_refused_without_a_gpu(instead: str, message: str) -> None:
    Path("k.ptx").write_text((HEAD + CLEAN).replace("ld.shared.u32 %r5, [%r4];", instead))
    assert message in check("clean").refused()
    with pytest.raises(UsageError, match=re.escape(message)):
        package.Kernel("k.ptx")


@needs_assembler
def test_a_text_that_ends_too_early_is_refused_at_its_last_line() -> None:
    Path("k.ptx").write_text(HEAD + ".visible .entry clean\n")
    assert re.match(rf"k\.ptx:{HEAD.count(chr(10)) + 1}:\d+: ", check("clean").refused())


# Stored past the end of an argument: nvJitLink 13.5 and ptxas 13.0 die of it.
DEADLY = """
.func f(.param .b32 a, .param .b32 b) { }
.visible .entry deadly()
{
  .reg .f32 %f<3>;
  { .param .b64 p0; .param .b32 p1; .param .b32 p2; st.param.f32 [p2+65536], %f1; call.uni f, (p1, p2); }
  ret;
}
"""


@needs_assembler
def test_a_text_that_crashes_the_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not consan's own process is lost. Whether this one does it depends on the assembler: a script that dies stands for it."""
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(Path("cache").absolute()))
    Path("k.ptx").write_text(HEAD + DEADLY + CLEAN)
    done = check("clean")
    assert done.status == 0 or "the assembler crashes on this PTX" in done.refused()
    Path("dies").write_text("#!/bin/sh\nkill -SEGV $$\n")
    Path("dies").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(Path("dies").absolute()))
    Path("k.ptx").write_text(HEAD + CLEAN)
    assert check("clean").refused() == "k.ptx: the assembler crashes on this PTX (Segmentation fault)"


@pytest.mark.parametrize("missing", ["assembler", "process", "answer"])
def test_where_nobody_can_judge_the_text_is_taken(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("k.ptx").write_text(HEAD + CLEAN + f"// without {missing}\n")
    if missing == "assembler":
        monkeypatch.setattr(assemble.find, "locate", lambda library: None)
        monkeypatch.setattr(assemble.find, "ptxas", lambda: None)
    else:
        monkeypatch.setattr("sys.executable", "/proc/none" if missing == "process" else "/bin/true")
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(Path("cache").absolute()))
    assembled = []
    monkeypatch.setattr(assemble, "_first_error", lambda *_: assembled.append(1))
    package.Kernel("k.ptx")
    assert not assembled


@needs_assembler
@pytest.mark.parametrize(
    "text",
    [
        HEAD.replace("8.0", "99.0") + CLEAN,
        HEAD.replace("sm_90", "sm_999") + CLEAN,
        HEAD.replace("sm_90", "sm_50") + CLEAN,
        HEAD + CLEAN.replace("bar.sync 0;", "bar.sync 0; wgmma.fence.sync.aligned;"),
        HEAD.replace("8.0", "7.0") + CLEAN.replace("bar.sync 0;", "bar.sync 0; fence.proxy.async;"),
    ],
    ids=["new version", "new target", "old target", "other target", "old version"],
)
def test_what_only_the_target_or_the_version_forbids_is_taken(text: str) -> None:
    assert package.Kernel(text).entry == "clean"


@needs_assembler
def test_inline_assembly_is_looked_at() -> None:
    """NVRTC copies it into the PTX as it is."""
    Path("k.cu").write_text('extern "C" __global__ void k(int* x) {\n    asm volatile("mov.u32 %0, %%tid.q;" : "=r"(x[threadIdx.x]));\n}\n')
    message = consan("check", "k.cu", *LAUNCH, "--arg", "i32[64]=zeros").refused()
    assert re.fullmatch(r"\S*k\.cu:2 \(line \d+ of its PTX\): Unknown vector selector: 'q'", message)
    Path("k.cu").write_text('extern "C" __global__ void k(int* x) {\n    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x[threadIdx.x]));\n}\n')
    assert consan("check", "k.cu", *LAUNCH, "--arg", "i32[64]=zeros").status == 0


def test_ptx_and_cuda_are_told_apart() -> None:
    Path("k.txt").write_text(MODULE)
    assert package.Kernel("k.txt", "clean").entry == "clean"
    source = '// .version 8.0 of this kernel\nextern "C" __global__ void k() {}\n'
    assert package.Kernel(source).entry == "k"
    Path("k.ptx").write_text("int main() {}\n")
    with pytest.raises(UsageError, match=r"k\.ptx:1:1: expected \.version"):
        package.Kernel("k.ptx")
    assert ARGS
