// Transforms over several devices and callbacks are not here: a function that calls for them does not compile.
#pragma once
#include "cufft.h"
