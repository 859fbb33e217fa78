// The shadow runtime as one translation unit: every file with hooks. Files whose names end in _hooks join several concerns; the others
// keep one part of the state and answer questions about it.
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
#include "tensormap.cuh"
