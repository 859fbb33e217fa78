// The shadow runtime as one translation unit. It includes every file with hooks. A file whose name ends in _hooks combines several parts of
// the state; each other file keeps one part and answers questions about it.
#pragma once

#include "access_hooks.cuh"
#include "async.cuh"
#include "barrier_hooks.cuh"
#include "bulk_hooks.cuh"
#include "convergence.cuh"
#include "exit.cuh"
#include "globals_hooks.cuh"
#include "matrix_hooks.cuh"
#include "mbarrier_hooks.cuh"
#include "slot_hooks.cuh"
#include "tensormap.cuh"
