// Binds functions of C++ to Python without pybind11, which takes longer to compile than most extensions. The values that cross are tensors,
// numbers, truth values, strings, and vectors, tuples and optionals of them. converting.cpp has what needs Python's headers.
#pragma once
#include <ATen/ATen.h>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

struct _object;

namespace consan {
using Object = ::_object *;

struct Function {
    std::string name;
    std::function<Object(const std::vector<Object> &)> call;
    std::vector<std::string> names;
    std::vector<Object> defaults; // null: there is none
};

void bind(Function function);
bool is_none(Object value);
std::vector<Object> parts(Object value);
Object listed(const std::vector<Object> &values, bool as_tuple);
void take(Object value, at::Tensor &into);
void take(Object value, int64_t &into);
void take(Object value, double &into);
void take(Object value, bool &into);
void take(Object value, std::string &into);
Object give(const at::Tensor &value);
Object give(int64_t value);
Object give(double value);
Object give(bool value);
Object give(const std::string &value);
Object none();

template <class T> struct Value {
    static T from(Object value) {
        if constexpr (std::is_enum_v<T>) {
            return T(Value<int64_t>::from(value));
        } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            int64_t found = 0;
            take(value, found);
            return T(found);
        } else if constexpr (std::is_floating_point_v<T>) {
            double found = 0;
            take(value, found);
            return T(found);
        } else {
            T found{};
            take(value, found);
            return found;
        }
    }
    static Object to(const T &value) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return give(int64_t(value));
        else if constexpr (std::is_floating_point_v<T>) return give(double(value));
        else return give(value);
    }
};

template <class T> struct Value<std::vector<T>> {
    static std::vector<T> from(Object value) {
        std::vector<T> found;
        for (Object each : parts(value)) found.push_back(Value<T>::from(each));
        return found;
    }
    static Object to(const std::vector<T> &values) {
        std::vector<Object> made;
        for (const auto &each : values) made.push_back(Value<T>::to(each));
        return listed(made, false);
    }
};

template <class T> struct Value<std::optional<T>> {
    static std::optional<T> from(Object value) { return is_none(value) ? std::nullopt : std::optional<T>(Value<T>::from(value)); }
    static Object to(const std::optional<T> &value) { return value ? Value<T>::to(*value) : none(); }
};

template <class... T> struct Value<std::tuple<T...>> {
    static Object to(const std::tuple<T...> &values) {
        return std::apply([](const auto &...each) { return listed({Value<std::decay_t<decltype(each)>>::to(each)...}, true); }, values);
    }
};

template <class T> struct Held {
    using type = std::decay_t<T>;
};
template <> struct Held<at::IntArrayRef> {
    using type = std::vector<int64_t>;
};
template <> struct Held<const char *> {
    using type = std::string;
};

template <class R, class... P, size_t... I> Object called(R (*function)(P...), const std::vector<Object> &values, std::index_sequence<I...>) {
    TORCH_CHECK(values.size() == sizeof...(P), "the function takes ", sizeof...(P), " arguments, ", values.size(), " given");
    std::tuple<typename Held<std::decay_t<P>>::type...> held{Value<typename Held<std::decay_t<P>>::type>::from(values[I])...};
    if constexpr (std::is_void_v<R>) {
        function(std::get<I>(held)...);
        return none();
    } else {
        return Value<std::decay_t<R>>::to(function(std::get<I>(held)...));
    }
}

template <class R, class... P> auto caller(R (*function)(P...)) {
    return [function](const std::vector<Object> &values) { return called(function, values, std::index_sequence_for<P...>()); };
}
} // namespace consan
