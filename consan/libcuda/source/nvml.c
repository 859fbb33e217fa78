// A libnvidia-ml.so.1 that can be opened, and says nothing: JAX looks for a GPU only where there is one.
#include "words.h"

EXPORT int nvmlInit_v2(void) { return 0; }
