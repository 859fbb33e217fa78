// A library into which a compiler like nvPTXCompiler is linked: its functions are visible, so its own calls go through the dynamic linker.
// With -DPTXAS: a program that compiles one file, as ptxas does.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
struct Compiler {
    uint64_t sum;
};

Result nvPTXCompilerCreate(struct Compiler **made, size_t bytes, const char *ptx) {
    *made = calloc(1, sizeof **made);
    for (size_t i = 0; i < bytes; i++) (*made)->sum = (*made)->sum * 31 + (unsigned char)ptx[i];
    return 0;
}
Result nvPTXCompilerGetCompiledProgram(struct Compiler *compiler, void *code) {
    uint64_t bytes = 72;  // a head of ELF, whose sections would begin where it ends, and the sum
    memcpy(memset(code, 0, 64), "\x7f" "ELF\2", 5);
    memcpy((char *)code + 40, &bytes, sizeof bytes);
    memcpy((char *)code + 64, &compiler->sum, 8);
    return 0;
}
Result nvPTXCompilerDestroy(struct Compiler **compiler) {
    free(*compiler);
    *compiler = NULL;
    return 0;
}

char *compiled(const char *ptx) {
    struct Compiler *compiler;
    char *code = calloc(1, 72);
    if (nvPTXCompilerCreate(&compiler, strlen(ptx), ptx) || nvPTXCompilerGetCompiledProgram(compiler, code)) return NULL;
    return nvPTXCompilerDestroy(&compiler) ? NULL : code;
}

#ifdef PTXAS
int main(int count, char **words) {  // ptxas -arch NAME INPUT ... OUTPUT
    static char text[1 << 20];
    FILE *in = fopen(words[3], "rb"), *out = fopen(words[count - 1][0] == '-' ? words[count - 1] + strlen("--output-file=") : words[count - 1], "wb");
    if (!in || !out || !fread(text, 1, sizeof text - 1, in)) return 1;
    fwrite(compiled(text), 1, 72, out);
    fclose(in), fclose(out);
    return getenv("PTXAS_FAILS") ? 1 : 0;
}
#endif
