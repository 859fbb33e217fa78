// A call as words: the parameters of every call, whatever it has (libcuda.c).
#ifndef CONSAN_WORDS_H
#define CONSAN_WORDS_H
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define PARAMETERS word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l, word m, word n, word o, word p
#define WORDS a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p

typedef uint64_t word;
#endif
