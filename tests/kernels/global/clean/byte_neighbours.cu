// CTAs store neighbouring bytes, and halves of a word.
//
// launch: grid=4 block=32
// arg:    bytes u8[128]=zeros
// arg:    halves u16[128]=zeros
// result: bytes = np.tile(np.arange(4), 32).astype(np.uint8)
// result: halves = np.tile(np.arange(4), 32).astype(np.uint16)
extern "C" __global__ void kernel(unsigned char* bytes, unsigned short* halves) {
    bytes[threadIdx.x * 4 + blockIdx.x] = blockIdx.x;
    halves[threadIdx.x * 4 + blockIdx.x] = blockIdx.x;
}
