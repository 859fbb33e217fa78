"""A kernel that reverses 128 words by a tile in shared memory. BARRIER stands where a barrier belongs."""

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
REVERSE = """
.visible .entry reverse(.param .u64 to, .param .u64 from)
{
.reg .b64 %d<4>; .reg .b32 %r<8>;
.shared .align 4 .b8 tile[512];
ld.param.u64 %d0, [to]; ld.param.u64 %d1, [from];
mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; cvt.u64.u32 %d2, %r1; add.u64 %d1, %d1, %d2; add.u64 %d0, %d0, %d2;
mov.u32 %r2, tile; add.u32 %r3, %r2, %r1; sub.u32 %r4, 508, %r1; add.u32 %r4, %r4, %r2;
ld.global.u32 %r5, [%d1]; st.shared.u32 [%r3], %r5;
BARRIER
ld.shared.u32 %r6, [%r4]; st.global.u32 [%d0], %r6;
ret;
}
"""
