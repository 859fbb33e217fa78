"""Small kernels in PTX, for tests that run the whole of consan on the virtual machine."""

from __future__ import annotations

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"

# Reads its neighbour's word, with or without the barrier in between; `n` is there to have a scalar parameter.
_SHIFT = """
.visible .entry {name}(.param .u64 out, .param .u32 n)
{{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r7, [n];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r4, %r3, %r2;
  add.u32 %r6, %r1, %r7;
  st.shared.u32 [%r4], %r6;
{barrier}  xor.b32 %r2, %r2, 128;
  add.u32 %r4, %r3, %r2;
  ld.shared.u32 %r5, [%r4];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}}
"""
CLEAN = _SHIFT.format(name="clean", barrier="  bar.sync 0;\n")
RACY = _SHIFT.format(name="racy", barrier="")
UNMODELLED = """
.visible .entry unmodelled()
{
  fence.proxy.alias;
  ret;
}
"""
NOT_EXECUTED = """
.visible .entry not_executed()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  suq.width.b32 %r1, [%rd1];
  ret;
}
"""
SPIN = """
.visible .entry spin()
{
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
AGAIN:
  mov.u32 %r1, %clock;
  setp.ne.u32 %p1, %r1, -1;
  @%p1 bra AGAIN;
  bra AGAIN;
}
"""
DEADLOCK = """
.visible .entry deadlock()
{
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  @!%p1 bar.sync 2, 64;
  ret;
}
"""
STARVED = """
.visible .entry starved()
{
  .reg .b32 %r<2>;
  .reg .pred %p<3>;
  .shared .align 16 .b64 bars[2];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [bars+8], 2;
  bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bars+8], 64;
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p2, [bars+8], 0;
  @!%p2 bra AGAIN;
  ret;
}
"""
_HALVES = """
.visible .entry {name}()
{{
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  mov.u32 %r1, %laneid;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 {barrier} 0;
  @!%p1 {barrier} 0;
  ret;
}}
"""
DIVERGENT = _HALVES.format(name="divergent", barrier="bar.sync")
IN_PARTS = _HALVES.format(name="in_parts", barrier="barrier.sync")
SCALARS = """
.visible .entry scalars(.param .u64 out, .param .f32 a, .param .u16 b, .param .f64 c, .param .align 4 .b8 d[12])
{
  .reg .b16 %h<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.b32 %r1, [a];
  st.global.b32 [%rd1], %r1;
  ld.param.u16 %h1, [b];
  st.global.u16 [%rd1+4], %h1;
  ld.param.b64 %rd2, [c];
  st.global.b64 [%rd1+8], %rd2;
  ld.param.b32 %r2, [d+8];
  st.global.b32 [%rd1+16], %r2;
  ret;
}
"""
MODULE = HEAD + CLEAN + RACY + UNMODELLED + NOT_EXECUTED + SPIN + DEADLOCK + STARVED + DIVERGENT + IN_PARTS + SCALARS
