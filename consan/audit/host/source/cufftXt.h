// Of transforms over several devices and callbacks nothing is here: a function that calls for them does not compile.
#pragma once
#include "cufft.h"
