// consan's library inside a native program: takes kernels at the CUDA driver and forwards them to the `consan run` process.
//
// It decides nothing. What the program hands to the driver (an image, a name, a launch) goes to the server as a request, and the
// server's answer (another image) goes to the driver instead. A second connection brings the server's orders: call this function of
// the driver with these arguments. So the server allocates and reads the shadow memory, which lives in this process's context.
//
// LD_PRELOAD and not CUDA_INJECTION64_PATH: the driver calls an injected library once, but gives it no documented means to replace an
// image. A preloaded library stands before the driver for programs that link it, that look functions up with dlsym, and that ask
// cuGetProcAddress, as the CUDA runtime does. Not seen: programs without a dynamic linker, and setuid programs.
//
// Images that were exchanged are never freed: the driver may read them again as long as the module lives.

#define _GNU_SOURCE
#include "graphs.h"
#include "links.h"
#include "mapped.h"
#include "nvrtc.h"
