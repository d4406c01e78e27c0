// What the kernel in _custom_operator.cpp is made of: opening libraries, reading attributes, dtypes as DLPack numbers
// them.

#ifndef DEEP500_FRAMEWORKS_TENSORFLOW_CUSTOM_OPERATOR_H
#define DEEP500_FRAMEWORKS_TENSORFLOW_CUSTOM_OPERATOR_H

#include <deep500/abi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace deep500 {
namespace {

// --- libraries -------------------------------------------------------------------------------------------------------

// Libraries, by operator, that stand in for those that a graph names and this machine does not have.
absl::Mutex provided_mutex;
std::map<std::string, std::string>& provided_libraries() {
    static auto* libraries = new std::map<std::string, std::string>;
    return *libraries;
}

// Opens the library that a graph names; it stays open until the process ends.
absl::Status open_library(const std::string& path, const std::string& name, void** handle) {
    *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (*handle != nullptr) return absl::OkStatus();
    const std::string reason = dlerror();
    std::string other;
    {
        absl::MutexLock lock(&provided_mutex);
        const auto found = provided_libraries().find(name);
        if (found != provided_libraries().end()) other = found->second;
    }
    if (!other.empty()) *handle = dlopen(other.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (*handle != nullptr) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("Deep500 operator '", name, "' has no library here: ", reason,
                                            ". A saved model holds the path of the library that it was saved with; "
                                            "where that has moved, build the operator "
                                            "and call load_custom_operators(operator) before the model is loaded."));
}

// --- attributes, as _native_operator.py writes them ------------------------------------------------------------------

// The values of an operator's attributes, and the views of them that cross the border.
class Attributes {
  public:
    // Reads lines of "name kind count values...": numbers with spaces between them, floats by their bits, so that no
    // locale matters and none is rounded; a string, after one space, as it is.
    absl::Status read(const std::string& text) {
        const char* place = text.data();
        const char* end = place + text.size();
        while (place < end) {
            Value value;
            std::string kind;
            if (!word(&place, end, &value.name) || !word(&place, end, &kind)) return broken(text);
            std::string count;
            if (!word(&place, end, &count)) return broken(text);
            value.count = std::strtoll(count.c_str(), nullptr, 10);
            if (value.count < 0 || value.count > end - place) return broken(text);
            if (kind == "string") {
                value.kind = D5_ATTRIBUTE_STRING;
                value.string.assign(place, value.count);
                place += value.count;
            } else {
                const bool is_int = kind == "int" || kind == "ints";
                const bool is_single = kind == "int" || kind == "float";
                value.kind = is_int ? (is_single ? D5_ATTRIBUTE_INT : D5_ATTRIBUTE_INTS)
                                    : (is_single ? D5_ATTRIBUTE_FLOAT : D5_ATTRIBUTE_FLOATS);
                for (int64_t i = 0; i < value.count; ++i) {
                    char* after = nullptr;
                    const int64_t bits = std::strtoll(place, &after, 10);
                    if (after == place) return broken(text);
                    place = after;
                    value.ints.push_back(bits);
                    value.floats.push_back(absl::bit_cast<double>(bits));
                }
            }
            if (place >= end || *place++ != '\n') return broken(text);
            values_.push_back(std::move(value));
        }
        for (const Value& value : values_) {
            views_.push_back({value.name.c_str(), value.kind, static_cast<int32_t>(value.count), value.ints.data(),
                              value.floats.data(), value.string.c_str()});
        }
        return absl::OkStatus();
    }

    const std::vector<d5_attribute>& views() const { return views_; }

  private:
    struct Value {
        std::string name;
        int32_t kind = 0;
        int64_t count = 0;
        std::vector<int64_t> ints;
        std::vector<double> floats;
        std::string string;
    };

    static bool word(const char** place, const char* end, std::string* found) {
        const void* space = std::memchr(*place, ' ', end - *place);
        if (space == nullptr) return false;
        found->assign(*place, static_cast<const char*>(space));
        *place = static_cast<const char*>(space) + 1;
        return true;
    }

    static absl::Status broken(const std::string& text) {
        return absl::InvalidArgumentError(absl::StrCat("The attributes of a Deep500 operator cannot be read: ", text));
    }

    std::vector<Value> values_;
    std::vector<d5_attribute> views_;
};

// --- tensors ---------------------------------------------------------------------------------------------------------

// Finds DLPack's code of a dtype; false where it has none.
bool dlpack_dtype(tensorflow::DataType dtype, d5_dtype* found) {
    const auto bits = static_cast<uint8_t>(8 * tensorflow::DataTypeSize(dtype));
    switch (dtype) {
        case tensorflow::DT_HALF:
        case tensorflow::DT_FLOAT:
        case tensorflow::DT_DOUBLE:
            *found = {D5_FLOAT, bits, 1};
            return true;
        case tensorflow::DT_BFLOAT16:
            *found = {D5_BFLOAT, bits, 1};
            return true;
        case tensorflow::DT_INT8:
        case tensorflow::DT_INT16:
        case tensorflow::DT_INT32:
        case tensorflow::DT_INT64:
            *found = {D5_INT, bits, 1};
            return true;
        case tensorflow::DT_UINT8:
        case tensorflow::DT_UINT16:
        case tensorflow::DT_UINT32:
        case tensorflow::DT_UINT64:
            *found = {D5_UINT, bits, 1};
            return true;
        case tensorflow::DT_COMPLEX64:
        case tensorflow::DT_COMPLEX128:
            *found = {D5_COMPLEX, bits, 1};
            return true;
        case tensorflow::DT_BOOL:
            *found = {D5_BOOL, bits, 1};
            return true;
        default:
            return false;
    }
}

// Whether every element is 0 (or -0).
bool is_zero(const tensorflow::Tensor& tensor) {
    const absl::string_view bytes = tensor.tensor_data();
    const bool is_complex = tensorflow::DataTypeIsComplex(tensor.dtype());
    const bool is_real = tensorflow::DataTypeIsFloating(tensor.dtype());
    const size_t size = tensorflow::DataTypeSize(tensor.dtype()) / (is_complex ? 2 : 1);
    for (size_t i = 0; i < bytes.size(); ++i) {
        const bool has_sign = (is_real || is_complex) && i % size == size - 1;
        if ((bytes[i] & (has_sign ? 0x7f : 0xff)) != 0) return false;
    }
    return true;
}

}  // namespace
}  // namespace deep500

#endif  // DEEP500_FRAMEWORKS_TENSORFLOW_CUSTOM_OPERATOR_H
