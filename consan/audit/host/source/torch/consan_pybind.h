// The part of pybind11 that modules of extensions use.
#pragma once
#include <consan_binding.h>

namespace pybind11 {
struct arg {
    const char *name;
    consan::Object value = nullptr;
    explicit arg(const char *given) : name(given) {}
    template <class T> arg operator=(const T &given) const {
        arg made(name);
        if constexpr (std::is_convertible_v<T, const char *>) made.value = consan::give(std::string(given));
        else made.value = consan::Value<std::decay_t<T>>::to(given);
        return made;
    }
    arg operator=(std::nullopt_t) const {
        arg made(name);
        made.value = consan::none();
        return made;
    }
};

struct module_ {
    static void add(consan::Function &, const char *) {}
    static void add(consan::Function &function, const arg &given) {
        function.names.push_back(given.name);
        function.defaults.push_back(given.value);
    }
    template <class R, class... P, class... More> module_ &def(const char *name, R (*function)(P...), const More &...more) {
        consan::Function made{name, consan::caller(function), {}, {}};
        (add(made, more), ...);
        consan::bind(made);
        return *this;
    }
    void doc() {}
};
} // namespace pybind11
namespace py = pybind11;

#define PYBIND11_MODULE(name, variable) \
    static void consan_define(pybind11::module_ &variable); \
    extern "C" void consan_module() { \
        pybind11::module_ made; \
        consan_define(made); \
    } \
    static void consan_define([[maybe_unused]] pybind11::module_ &variable)
