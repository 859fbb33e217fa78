// Between Python and extensions: values that cross (consan_binding.h), and torch's memory on the CPU, which comes from the virtual machine, so
// that kernels reach tensors at their own addresses.
#include <Python.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/python_variable.h>
#include <consan_binding.h>

namespace {
void *(*allocate)(size_t bytes);
void (*release)(void *address);

struct Arena final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        void *address = bytes == 0 ? nullptr : ::allocate(bytes);
        TORCH_CHECK(address != nullptr || bytes == 0, "consan: the virtual machine is out of memory: ", bytes, " bytes asked for");
        return {address, address, ::release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return ::release; }
    void copy_data(void *to, const void *from, size_t bytes) const override { default_copy_data(to, from, bytes); }
} arena;

std::vector<consan::Function> functions;

void check() {
    if (PyErr_Occurred()) {
        PyErr_Clear();
        TORCH_CHECK(false, "an argument is of another type than its parameter");
    }
}
} // namespace

namespace consan {
void bind(Function function) { functions.push_back(std::move(function)); }
bool is_none(Object value) { return value == Py_None; }
Object none() { return Py_NewRef(Py_None); }

std::vector<Object> parts(Object value) {
    Object sequence = PySequence_Fast(value, "a sequence");
    check();
    const auto count = PySequence_Fast_GET_SIZE(sequence);
    std::vector<Object> found(PySequence_Fast_ITEMS(sequence), PySequence_Fast_ITEMS(sequence) + count);
    Py_DECREF(sequence); // the value holds them
    return found;
}

Object listed(const std::vector<Object> &values, bool as_tuple) {
    Object made = as_tuple ? PyTuple_New(values.size()) : PyList_New(values.size());
    for (size_t i = 0; i < values.size(); ++i) as_tuple ? PyTuple_SET_ITEM(made, i, values[i]) : PyList_SET_ITEM(made, i, values[i]);
    return made;
}

void take(Object value, at::Tensor &into) {
    if (value == Py_None) return;
    TORCH_CHECK(THPVariable_Check(value), "expected a tensor");
    into = THPVariable_Unpack(value);
}
void take(Object value, int64_t &into) { into = PyLong_AsLongLong(value), check(); }
void take(Object value, double &into) { into = PyFloat_AsDouble(value), check(); }
void take(Object value, bool &into) { into = PyObject_IsTrue(value) != 0; }
void take(Object value, std::string &into) {
    const char *text = PyUnicode_AsUTF8(value);
    check();
    into = text;
}
Object give(const at::Tensor &value) { return value.defined() ? THPVariable_Wrap(value) : none(); }
Object give(int64_t value) { return PyLong_FromLongLong(value); }
Object give(double value) { return PyFloat_FromDouble(value); }
Object give(bool value) { return PyBool_FromLong(value); }
Object give(const std::string &value) { return PyUnicode_FromStringAndSize(value.data(), value.size()); }
} // namespace consan

extern "C" {
void consan_own_memory(void *(*given_allocate)(size_t), void (*given_release)(void *)) {
    allocate = given_allocate;
    release = given_release;
    c10::SetCPUAllocator(&arena, 255);
}

// The functions bound since a number: [(number, name, names of parameters, defaults)]; a default that is missing is Ellipsis.
PyObject *consan_bound(int since) {
    PyObject *made = PyList_New(0);
    for (size_t i = since; i < functions.size(); ++i) {
        PyObject *names = PyList_New(0), *defaults = PyList_New(0);
        for (const auto &name : functions[i].names) PyList_Append(names, PyUnicode_FromString(name.c_str()));
        for (auto *value : functions[i].defaults) PyList_Append(defaults, value ? value : Py_Ellipsis);
        PyList_Append(made, Py_BuildValue("(isOO)", int(i), functions[i].name.c_str(), names, defaults));
    }
    return made;
}

PyObject *consan_call(int number, PyObject *arguments) {
    try {
        return functions.at(number).call(consan::parts(arguments));
    } catch (const c10::Error &error) { PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace()); } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) { PyErr_SetString(PyExc_RuntimeError, "an exception of C++"); }
    return nullptr;
}
}
