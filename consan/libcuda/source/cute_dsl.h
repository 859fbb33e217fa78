// What host code of CuTe DSL asks its runtime library for besides calls of CUDA (CuteDSLRuntime.h): code that is compiled with TVM-FFI loads its
// kernels by the first call, and raises errors by a function of TVM-FFI that it hands over.

typedef void (*raise_parts)(const char *kind, const char **parts, int32_t count);
typedef void (*raise_text)(const char *kind, const char *text);

static const char raised_kind[] = "CUDADialectError", raised_text[] = "CUDA Error Code: ";

EXPORT const char *cuda_dialect_get_error_name(int code) {
    const char *text = NULL;
    error_text(code, &text, 1);
    return text ? text : "unrecognized error code";
}
EXPORT const char *CuteDSLRT_GetErrorName(int code) { return cuda_dialect_get_error_name(code); }
EXPORT const char *CuteDSLRT_GetErrorString(int code) {
    const char *text = NULL;
    error_text(code, &text, 0);
    return text ? text : "unrecognized error code";
}

// Behind a call in host code that raises nothing, such as one that encodes a tensor map.
EXPORT void cuda_dialect_print_on_error(int code) {
    if (code != SUCCESS) fprintf(stderr, "%s%d (%s: %s)\n", raised_text, code, cuda_dialect_get_error_name(code), CuteDSLRT_GetErrorString(code));
}
EXPORT void cuda_dialect_assert_success(int code) {
    cuda_dialect_print_on_error(code);
    if (code != SUCCESS) abort();
}

EXPORT void CuteDSLRT_TVMFFISetRaisedCudaError(raise_parts set, int code) {
    char number[16];
    const char *parts[] = {raised_text, number};
    snprintf(number, sizeof number, "%d", code);
    set(raised_kind, parts, COUNT(parts));
}
// The sizes of the launch follow; the code alone is raised.
EXPORT void CuteDSLRT_TVMFFISetRaisedCudaLaunchError(raise_parts set) { CuteDSLRT_TVMFFISetRaisedCudaError(set, INVALID_VALUE); }

static pthread_mutex_t loads = PTHREAD_MUTEX_INITIALIZER;

// `library`: where the program keeps the handle, which is zero before.
EXPORT int cuda_dialect_init_library_once(word *library, int (*load)(word *), int (*load_to_device)(word *, int), raise_text set) {
    word made = 0;
    int code = SUCCESS;
    pthread_mutex_lock(&loads);
    if (!*library) {
        code = load(&made);
        if (code == SUCCESS && load_to_device) code = load_to_device(&made, 0);
        if (code == SUCCESS) *library = made;
    }
    pthread_mutex_unlock(&loads);
    if (code != SUCCESS) {
        char text[sizeof raised_text + 16];
        snprintf(text, sizeof text, "%s%d", raised_text, code);
        set(raised_kind, text);
    }
    return code;
}
EXPORT void cuda_dialect_unload_library_once(word *library) { *library = 0; }
