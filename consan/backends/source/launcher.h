// A launch by a callable of Python's, as Triton makes it: a callable of C stands before it, and makes those launches that are armed and need
// no slot (armed.h). All others are made by what it stands for.
//
// The functions of the interpreter belong to its stable interface, so they are declared here: no header of Python is needed.
#pragma once
#include <math.h>
#include <stdlib.h>

typedef struct _object PyObject;
typedef struct {
    int slot;
    void *function;
} PyType_Slot;
typedef struct {
    const char *name;
    int bytes, item_bytes;
    unsigned int flags;
    PyType_Slot *slots;
} PyType_Spec;

PyObject *PyType_FromSpec(PyType_Spec *);
PyObject *PyType_GenericAlloc(PyObject *, ssize_t);
void *PyType_GetSlot(PyObject *, int);
PyObject *PyObject_Type(PyObject *);
PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *);
PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...);
PyObject *PyObject_CallMethodObjArgs(PyObject *, PyObject *, ...);
PyObject *PyObject_GetAttr(PyObject *, PyObject *);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyTuple_New(ssize_t);
PyObject *PyTuple_GetItem(PyObject *, ssize_t);
ssize_t PyTuple_Size(PyObject *);
int PyTuple_SetItem(PyObject *, ssize_t, PyObject *);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
long long PyLong_AsLongLong(PyObject *);
unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
double PyFloat_AsDouble(PyObject *);
int PyUnicode_CompareWithASCIIString(PyObject *, const char *);
PyObject *PyErr_Occurred(void);
void PyErr_Clear(void);
void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **);
int PyException_SetTraceback(PyObject *, PyObject *);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);

#define TP_CALL 50
#define TP_DEALLOC 52
#define TP_GETATTRO 58
#define TP_FREE 74
#define HAS_VERSION_TAG (1 << 18)

#define SHAPE 5      // grid, stream, the kernel's handle
#define METADATA 6   // its place; two hooks follow
#define ARGUMENTS 9  // their place
#define MOST_PACKED 64
#define POINTER 'p' // kinds of arguments (adapters/triton/parameters.py); the others: so many bytes of a whole number
#define FLOAT 'f'
#define DOUBLE 'd'
#define CONSTANT '-'

struct Launcher {
    PyObject *otherwise, *plain, *unheard; // what it stands for; Triton's launcher; metadata that nobody hears
    struct Armed *before;                  // of the last launch
    ssize_t count;                         // of arguments
    char kinds[MOST_PACKED];
};

struct Packed { // the parameters, as far as the arguments give them
    uint64_t count, values[MOST_PACKED], sizes[MOST_PACKED];
    void *places[MOST_PACKED];
    bool known;
};

struct Begun { // a launch that is counted
    struct Armed *armed;
    uint64_t serial, set;
    void *function;
};

static struct {
    ssize_t header; // bytes of an object without anything of its own
    PyObject *none, *whole, *data_ptr, *type;
} python;

static struct Launcher *launcher_of(PyObject *self) { return (struct Launcher *)((char *)self + python.header); }

static bool is_refused(void) {
    if (!PyErr_Occurred()) return false;
    PyErr_Clear();
    return true;
}

static bool is_whole(PyObject *given) {
    PyObject *type = PyObject_Type(given);
    Py_DecRef(type);
    return type == python.whole;
}

static bool read_whole(PyObject *given, uint64_t nbytes, uint64_t *value) {
    long long found = PyLong_AsLongLong(given);
    if (is_refused()) {
        *value = nbytes == sizeof *value ? PyLong_AsUnsignedLongLong(given) : 0;
        return nbytes == sizeof *value && !is_refused();
    }
    *value = (uint64_t)found;
    if (nbytes == sizeof *value) return true;
    *value &= (1ull << 8 * nbytes) - 1;
    return found >= -(1ll << (8 * nbytes - 1)) && found < 1ll << 8 * nbytes;
}

static bool read_float(PyObject *given, uint64_t nbytes, uint64_t *value) {
    double found = PyFloat_AsDouble(given);
    if (is_refused()) return false;
    float less = (float)found;
    memcpy(value, nbytes == sizeof less ? (void *)&less : (void *)&found, nbytes);
    return nbytes == sizeof found || !isinf(less) || isinf(found);
}

static bool read_pointer(PyObject *given, uint64_t *value) {
    if (given == python.none) return true;
    if (is_whole(given)) return read_whole(given, sizeof *value, value);
    PyObject *found = PyObject_CallMethodObjArgs(given, python.data_ptr, NULL);
    bool done = found && read_whole(found, sizeof *value, value);
    Py_DecRef(found);
    return !is_refused() && done;
}

static uint64_t bytes_of(char kind) { return kind == FLOAT ? sizeof(float) : kind == DOUBLE || kind == POINTER ? sizeof(double) : (uint64_t)(kind - '0'); }

static bool read_argument(char kind, PyObject *given, uint64_t nbytes, uint64_t *value) {
    if (kind == POINTER) return read_pointer(given, value);
    return kind == FLOAT || kind == DOUBLE ? read_float(given, nbytes, value) : nbytes <= sizeof *value && read_whole(given, nbytes, value);
}

// Not `known`: an argument of a kind that is not read here, or a value that does not fit.
static void pack(const struct Launcher *own, PyObject *args, struct Packed *packed) {
    packed->count = 0, packed->known = true;
    for (ssize_t at = 0; at < own->count && packed->known; at++) {
        if (own->kinds[at] == CONSTANT) continue;
        uint64_t to = packed->count++;
        packed->values[to] = 0, packed->sizes[to] = bytes_of(own->kinds[at]), packed->places[to] = &packed->values[to];
        packed->known = read_argument(own->kinds[at], PyTuple_GetItem(args, ARGUMENTS + at), packed->sizes[to], &packed->values[to]);
    }
}

// Whether all parameters are there that are to be compared. Addresses of scratch memory, which Triton adds, are null.
static bool fits(struct Packed *packed, const struct Armed *armed) {
    while (packed->known && packed->count < armed->count && packed->count < MOST_PACKED) {
        uint64_t to = packed->count++;
        packed->values[to] = 0, packed->sizes[to] = sizeof *packed->values, packed->places[to] = &packed->values[to];
    }
    bool done = packed->known && (!armed->count || packed->count == armed->count);
    for (uint64_t at = 0; at < armed->count && done; at++) done = packed->sizes[at] == armed->sizes[at];
    for (uint64_t at = 0; at < armed->decide_count && done; at++) done = armed->decides[at].parameter < packed->count;
    return done || !(armed->count || armed->decide_count);
}

// Whether all arrays lie on a device: memory of the host has another address there.
static bool are_on_device(const struct Launcher *own, PyObject *args) {
    bool done = true;
    for (ssize_t at = 0; at < own->count && done; at++) {
        PyObject *given = PyTuple_GetItem(args, ARGUMENTS + at);
        if (own->kinds[at] != POINTER || given == python.none || is_whole(given)) continue;
        PyObject *device = PyObject_GetAttrString(given, "device"), *type = device ? PyObject_GetAttrString(device, "type") : NULL;
        done = type && PyUnicode_CompareWithASCIIString(type, "cuda") == 0;
        Py_DecRef(type), Py_DecRef(device);
        done = !is_refused() && done;
    }
    return done;
}

static bool is_heard(const struct Launcher *own, PyObject *args) {
    if (PyTuple_GetItem(args, METADATA) == own->unheard) return false;
    return PyTuple_GetItem(args, METADATA + 1) != python.none || PyTuple_GetItem(args, METADATA + 2) != python.none;
}

static bool read_key(PyObject *args, uint64_t *key) {
    static const uint64_t places[SHAPE] = {1, 2, 3, KEY - 1, 0};
    for (ssize_t at = 0; at < SHAPE; at++) {
        PyObject *given = PyTuple_GetItem(args, at);
        if (given != python.none && !(is_whole(given) && read_whole(given, sizeof *key, &key[places[at]]))) return false;
    }
    return true;
}

// Count a launch that is armed. `adds`: its values may be new ones. False: Python makes it, or, without `adds`, its values are new.
static bool begin_known(struct Launcher *own, const uint64_t *key, struct Packed *packed, bool adds, struct Begun *begun) {
    if (pthread_mutex_trylock(&launches.lock)) return false;
    uint64_t began = nanoseconds();
    struct Armed *armed = own->before && is_like(own->before, key) ? own->before : find_armed(key);
    bool done = armed && !armed->slot_count && fits(packed, armed) && has_deciding_bytes(armed, packed->places);
    done = done && (adds || knows_values(armed, packed->places)) && find_values(armed, packed->places) && is_here(armed) && note_launch(armed);
    if (done) {
        *begun = (struct Begun){own->before = armed, armed->serial, armed->set, armed->instead};
        armed->times[armed->set]++;
        armed->nanoseconds += nanoseconds() - began;
    }
    pthread_mutex_unlock(&launches.lock);
    return done;
}

static void uncount(const struct Begun *begun) {
    pthread_mutex_lock(&launches.lock);
    if (begun->armed->taken && begun->armed->serial == begun->serial) begun->armed->times[begun->set]--;
    pthread_mutex_unlock(&launches.lock);
}

// Begin a launch. No function of Python is called with the lock: one may take launches back.
static bool begin_launch(struct Launcher *own, PyObject *args, struct Begun *begun) {
    uint64_t key[KEY] = {0};
    struct Packed packed;
    if (PyTuple_Size(args) != ARGUMENTS + own->count || is_heard(own, args) || !read_key(args, key)) return false;
    pack(own, args, &packed);
    return begin_known(own, key, &packed, false, begun) || (packed.known && are_on_device(own, args) && begin_known(own, key, &packed, true, begun));
}

// The arguments for Triton's launcher: of another kernel, and without what nobody hears.
static PyObject *replace(PyObject *args, void *function) {
    ssize_t count = PyTuple_Size(args);
    PyObject *found = PyTuple_New(count);
    for (ssize_t at = 0; found && at < count; at++) {
        bool handle = function && at == SHAPE - 1, unheard = at >= METADATA && at < ARGUMENTS;
        PyObject *item = handle ? PyLong_FromUnsignedLongLong((uintptr_t)function) : unheard ? python.none : PyTuple_GetItem(args, at);
        if (!handle) Py_IncRef(item);
        PyTuple_SetItem(found, at, item);
    }
    return found;
}

// Python gets an exception, and raises it again.
static PyObject *fail(struct Launcher *own, PyObject *args) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    PyObject *result = PyObject_CallMethod(own->otherwise, "failed", "OO", error, args);
    Py_DecRef(type), Py_DecRef(error), Py_DecRef(trace);
    return result;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *named) {
    struct Launcher *own = launcher_of(self);
    struct Begun begun;
    if (named || !begin_launch(own, args, &begun)) return PyObject_Call(own->otherwise, args, named);
    PyObject *given = replace(args, begun.function), *result = NULL;
    made_launches++, quiet_launches++;
    if (given) result = PyObject_Call(own->plain, given, NULL);
    made_launches--, quiet_launches--;
    Py_DecRef(given);
    if (result) return result;
    uncount(&begun);
    return fail(own, args);
}

static PyObject *get_attribute(PyObject *self, PyObject *name) { return PyObject_GetAttr(launcher_of(self)->otherwise, name); }

static void drop(PyObject *self) {
    struct Launcher *own = launcher_of(self);
    PyObject *type = PyObject_Type(self);
    Py_DecRef(own->otherwise), Py_DecRef(own->plain), Py_DecRef(own->unheard);
    ((void (*)(void *))PyType_GetSlot(type, TP_FREE))(self);
    Py_DecRef(type), Py_DecRef(type); // the object had one reference
}

// Once, before the first launcher. `header`: bytes of an object of Python; `whole`: the type of whole numbers; `data_ptr`: that name.
EXPORTED int consan_launchers(uint64_t header, PyObject *none, PyObject *whole, PyObject *data_ptr) {
    static PyType_Slot slots[] = {{TP_CALL, (void *)call}, {TP_DEALLOC, (void *)drop}, {TP_GETATTRO, (void *)get_attribute}, {0, NULL}};
    PyType_Spec form = {"consan.Launcher", (int)(header + sizeof(struct Launcher)), 0, HAS_VERSION_TAG, slots};
    python.header = (ssize_t)header, python.none = none, python.whole = whole, python.data_ptr = data_ptr;
    Py_IncRef(none), Py_IncRef(whole), Py_IncRef(data_ptr);
    python.type = PyType_FromSpec(&form);
    return python.type != NULL;
}

// A callable that stands before `plain`, Triton's launcher. `otherwise` makes the launches that are not armed.
EXPORTED PyObject *consan_launcher(PyObject *otherwise, PyObject *plain, PyObject *unheard, const char *kinds, uint64_t count) {
    PyObject *made = PyType_GenericAlloc(python.type, 0);
    if (!made) return NULL;
    struct Launcher *own = launcher_of(made);
    Py_IncRef(otherwise), Py_IncRef(plain), Py_IncRef(unheard);
    own->otherwise = otherwise, own->plain = plain, own->unheard = unheard, own->count = (ssize_t)count;
    memcpy(own->kinds, kinds, count < MOST_PACKED ? count : MOST_PACKED);
    return made;
}
