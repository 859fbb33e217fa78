// What cuda_runtime.h asks for before all others; the compiler of the host needs nothing from it.
#pragma once
