// Two uses of one collective (COLLECTIVE) on the same temporary storage, with and without the barrier that CUB asks for between them: of the
// CTA, or of the warp where WARP_WIDE is 1. ODD_SIZE is 0 for collectives that need a power of two of threads.
#include "cub_headers.cuh"

#define THREADS 64
#define ITEMS 1
#include "cub_reuse.cuh"
#undef THREADS
#undef ITEMS

#define THREADS 128
#define ITEMS 4
#include "cub_reuse.cuh"
#undef THREADS
#undef ITEMS

#if ODD_SIZE
#define THREADS 96
#define ITEMS 3
#include "cub_reuse.cuh"
#endif
