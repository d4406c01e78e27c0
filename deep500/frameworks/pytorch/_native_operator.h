// One native operator as PyTorch's dispatcher holds it: the functions of its library, called with tensors.
#ifndef DEEP500_FRAMEWORKS_PYTORCH_NATIVE_OPERATOR_H
#define DEEP500_FRAMEWORKS_PYTORCH_NATIVE_OPERATOR_H

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/SmallVector.h>
#include <deep500/abi.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace deep500 {

using Tensors = c10::SmallVector<at::Tensor, 8>;

// Becomes deep500.core.errors.OperatorError, in whatever thread it was thrown.
struct OperatorError : torch::PyTorchError {
    using torch::PyTorchError::PyTorchError;
    PyObject* python_type() override { return type(); }
    static PyObject*& type() {
        static PyObject* found = PyExc_ValueError;
        return found;
    }
};

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    throw OperatorError(c10::str(parts...));
}

// The values that belong to an operator, in the form in which they cross the border.
class Attributes {
  public:
    void add(std::string name, int32_t kind, std::vector<int64_t> ints, std::vector<double> floats, std::string text) {
        auto entry =
            std::make_unique<Entry>(Entry{std::move(name), std::move(ints), std::move(floats), std::move(text)});
        const size_t count = kind == D5_ATTRIBUTE_STRING                                 ? entry->text.size()
                             : kind == D5_ATTRIBUTE_FLOAT || kind == D5_ATTRIBUTE_FLOATS ? entry->floats.size()
                                                                                         : entry->ints.size();
        views_.push_back({entry->name.c_str(), kind, static_cast<int32_t>(count), entry->ints.data(),
                          entry->floats.data(), entry->text.c_str()});
        entries_.push_back(std::move(entry));
    }
    const std::vector<d5_attribute>& views() const { return views_; }

  private:
    struct Entry {
        std::string name;
        std::vector<int64_t> ints;
        std::vector<double> floats;
        std::string text;
    };
    std::vector<std::unique_ptr<Entry>> entries_;  // their addresses stay
    std::vector<d5_attribute> views_;
};

// Dtype and shape of a tensor that is to be made.
struct TensorType {
    at::ScalarType dtype;
    std::vector<int64_t> sizes;
};
using TensorTypes = std::vector<TensorType>;

// Sizes, rank and dtype of every input (-1 where absent), for a backward that is not given the inputs themselves.
struct Outlines {
    std::vector<c10::SymInt> sizes;
    std::vector<int64_t> ranks;
    std::vector<int64_t> dtypes;

    void add(const at::Tensor& tensor) {
        const auto shape = tensor.defined() ? tensor.sym_sizes() : c10::SymIntArrayRef();
        sizes.insert(sizes.end(), shape.begin(), shape.end());
        ranks.push_back(static_cast<int64_t>(shape.size()));
        dtypes.push_back(tensor.defined() ? static_cast<int64_t>(tensor.scalar_type()) : -1);
    }
};

inline d5_dtype border_dtype(const std::string& name, at::ScalarType dtype) {
    switch (dtype) {
        case at::kBool:
            return {D5_BOOL, 8, 1};
        case at::kByte:
            return {D5_UINT, 8, 1};
        case at::kUInt16:
            return {D5_UINT, 16, 1};
        case at::kUInt32:
            return {D5_UINT, 32, 1};
        case at::kUInt64:
            return {D5_UINT, 64, 1};
        case at::kChar:
            return {D5_INT, 8, 1};
        case at::kShort:
            return {D5_INT, 16, 1};
        case at::kInt:
            return {D5_INT, 32, 1};
        case at::kLong:
            return {D5_INT, 64, 1};
        case at::kHalf:
            return {D5_FLOAT, 16, 1};
        case at::kFloat:
            return {D5_FLOAT, 32, 1};
        case at::kDouble:
            return {D5_FLOAT, 64, 1};
        case at::kBFloat16:
            return {D5_BFLOAT, 16, 1};
        case at::kComplexFloat:
            return {D5_COMPLEX, 64, 1};
        case at::kComplexDouble:
            return {D5_COMPLEX, 128, 1};
        default:
            fail(name, " was given a tensor of ", dtype,
                 "; accepted are floats of 16 to 64 bits, integers, complex numbers and booleans.");
    }
}

// Returns CUDA's current stream. Older versions of PyTorch tell Python only.
inline void* ask_python_for_stream(at::Device device) {
    pybind11::gil_scoped_acquire gil;
    const auto stream = pybind11::module_::import("torch.cuda").attr("current_stream")(device.index());
    return reinterpret_cast<void*>(stream.attr("cuda_stream").cast<uintptr_t>());
}
template <typename Guard>
auto current_stream(const Guard& guard, at::Device device, int)
    -> decltype(guard.getStreamNativeHandle(guard.getStream(device))) {
    try {
        return guard.getStreamNativeHandle(guard.getStream(device));
    } catch (const c10::Error&) {  // of versions that have it for other devices only
        return ask_python_for_stream(device);
    }
}
template <typename Guard>
void* current_stream(const Guard&, at::Device device, long) {
    return ask_python_for_stream(device);
}

class NativeOperator {
  public:
    std::string name;         // the author's
    int64_t input_count = 0;  // -1: a list of any length
    int64_t output_count = 1;
    d5_function forward = nullptr;
    d5_function backward = nullptr;  // null where it cannot be differentiated
    d5_function second = nullptr;    // null where it cannot be differentiated twice
    bool reads_inputs = true;        // whether the backward does
    bool reads_outputs = true;
    bool on_cpu = true;
    bool on_cuda = false;
    Attributes attributes;
    PyObject* infer = nullptr;  // (shapes, dtypes) -> [(shape, dtype)]; null where every output is like the first input
    std::unique_ptr<c10::OperatorHandle> backward_handle;  // the backward in the dispatcher
    std::unique_ptr<c10::OperatorHandle> second_handle;

    Tensors run_forward(at::TensorList inputs) const {
        const at::Device device = device_of(inputs);
        Tensors outputs;
        if (infer == nullptr) {
            if (inputs.empty() || !inputs[0].defined()) fail(name, " was given no first input.");
            for (int64_t i = 0; i < output_count; ++i) {
                outputs.push_back(allocate(inputs[0].sizes(), inputs[0].scalar_type(), device));
            }
        } else {
            for (const TensorType& type : *inferred(inputs))
                outputs.push_back(allocate(type.sizes, type.dtype, device));
        }
        call(forward, inputs, outputs, device);
        return outputs;
    }

    // Returns the gradients by those inputs that are wanted. `given` are the gradients by the outputs, the inputs and
    // the outputs, undefined where absent; the outlines stand for inputs that are absent because nobody kept them.
    std::vector<at::Tensor> run_backward(at::TensorList given, const std::vector<bool>& wanted,
                                         const Outlines& outlines) const {
        const at::Device device = device_of(given);
        std::vector<at::Tensor> results(wanted.size());
        size_t begin = 0;
        for (size_t i = 0; i < wanted.size(); ++i) {
            const bool has_outline = i < outlines.ranks.size();
            const size_t end = begin + (has_outline ? static_cast<size_t>(outlines.ranks[i]) : 0);
            const at::Tensor& input = given[static_cast<size_t>(output_count) + i];
            if (wanted[i] && input.defined()) {
                results[i] = allocate(input.sizes(), input.scalar_type(), device);
            } else if (wanted[i]) {
                TORCH_CHECK_VALUE(has_outline && begin <= end && end <= outlines.sizes.size(), "sizes are missing");
                std::vector<int64_t> sizes;
                for (size_t j = begin; j < end; ++j) sizes.push_back(outlines.sizes[j].expect_int());
                results[i] = allocate(sizes, static_cast<at::ScalarType>(outlines.dtypes.at(i)), device);
            }
            begin = end;
        }
        call(backward, given, results, device);
        return results;
    }

    // Returns the gradients by those tensors that are wanted. `given` are the gradients by the backward's results, then
    // all that the backward was given.
    std::vector<at::Tensor> run_second(at::TensorList given, const std::vector<bool>& wanted) const {
        const at::Device device = device_of(given);
        std::vector<at::Tensor> results(wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i) {
            const at::Tensor& tensor = given[given.size() - wanted.size() + i];
            TORCH_CHECK_VALUE(!wanted[i] || tensor.defined(), "a gradient by an absent tensor is wanted");
            if (wanted[i]) results[i] = allocate(tensor.sizes(), tensor.scalar_type(), device);
        }
        call(second, given, results, device);
        return results;
    }

    // Returns where all tensors lie.
    at::Device device_of(at::TensorList tensors) const {
        const at::Tensor* first = nullptr;
        for (const at::Tensor& tensor : tensors) {
            if (!tensor.defined()) continue;
            if (tensor.layout() != at::kStrided) {
                fail(name, " was given a tensor of the layout ", tensor.layout(), "; accepted are dense ones.");
            }
            if (first == nullptr) first = &tensor;
            if (tensor.device() != first->device()) {
                fail(name, " was given tensors on ", first->device(), " and on ", tensor.device(),
                     "; accepted are tensors on one device. Move them with .to(device).");
            }
        }
        if (first == nullptr) fail(name, " was given no tensor.");
        const at::Device device = first->device();
        if (device.is_cpu() ? on_cpu : device.is_cuda() && on_cuda) return device;
        fail(name, " was given a tensor on ", device, "; its library has code for ", on_cpu ? "the CPU" : "CUDA",
             on_cpu && on_cuda ? " and CUDA." : " only.",
             device.is_cuda() ? " Write forward_cuda, and compile it as a .cu file, or move the tensor to the CPU."
                              : " Move the tensor there.");
    }

    static at::Tensor allocate(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device) {
        // What at::empty does on the CPU, without the way through the dispatcher.
        if (device.is_cpu()) return at::Tensor(at::detail::empty_cpu(sizes, dtype));
        at::AutoDispatchBelowADInplaceOrView guard;
        return at::empty(sizes, at::TensorOptions().dtype(dtype).device(device));
    }

    // Returns dtypes and shapes of the outputs. Python is asked once for every combination of shapes and dtypes.
    std::shared_ptr<const TensorTypes> inferred(at::TensorList inputs) const {
        thread_local std::vector<int64_t> key;
        key.clear();
        for (const at::Tensor& input : inputs) {
            if (!input.defined()) {
                key.push_back(-1);
                continue;
            }
            key.push_back(input.dim());
            key.push_back(static_cast<int64_t>(input.scalar_type()));
            key.insert(key.end(), input.sizes().begin(), input.sizes().end());
        }
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = known_.find(key);
            if (found != known_.end()) return found->second;
        }
        const std::vector<int64_t> asked = key;  // what Python runs may come back here
        auto types = ask_python(inputs);         // without the lock: who holds it must not wait for the GIL
        const std::lock_guard<std::mutex> lock(mutex_);
        if (known_.size() >= kMostKnown) known_.clear();
        known_[asked] = types;
        return types;
    }

  private:
    static constexpr size_t kMostKnown = 4096;
    static constexpr size_t kErrorBytes = 2048;

    struct Hash {
        size_t operator()(const std::vector<int64_t>& values) const {
            uint64_t hash = 14695981039346656037u;
            for (const int64_t value : values) {
                hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211u;
                hash ^= hash >> 29;
            }
            return hash;
        }
    };

    std::shared_ptr<const TensorTypes> ask_python(at::TensorList inputs) const {
        pybind11::gil_scoped_acquire gil;
        try {
            pybind11::list shapes;
            pybind11::list dtypes;
            for (const at::Tensor& input : inputs) {
                if (!input.defined()) {
                    shapes.append(pybind11::none());
                    dtypes.append(pybind11::none());
                    continue;
                }
                shapes.append(pybind11::tuple(pybind11::cast(input.sizes().vec())));
                dtypes.append(pybind11::cast(input.scalar_type()));
            }
            auto types = std::make_shared<TensorTypes>();
            const pybind11::object found = pybind11::handle(infer)(shapes, dtypes);
            for (const pybind11::handle type : found) {
                const auto pair = type.cast<std::pair<std::vector<int64_t>, at::ScalarType>>();
                types->push_back({pair.second, pair.first});
            }
            return types;
        } catch (pybind11::error_already_set& error) {
            error.restore();
            python_error kept;  // unlike pybind11's, it may be handed to other threads
            kept.persist();
            throw kept;
        }
    }

    // Returns the tensor, or a copy in row-major order, with its values computed, at an address that its dtype may
    // have.
    const at::Tensor& dense(const at::Tensor& tensor, Tensors& copies) const {
        static const c10::DispatchKeySet lazy{c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                              c10::DispatchKey::ZeroTensor};
        const bool is_plain = tensor.is_contiguous() && !tensor.key_set().has_any(lazy);
        const auto address = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
        if (C10_LIKELY(is_plain && address % alignment(tensor) == 0)) return tensor;
        at::AutoDispatchBelowADInplaceOrView guard;
        copies.push_back(allocate(tensor.sizes(), tensor.scalar_type(), tensor.device()));
        if (!tensor.is_complex() || !tensor.is_cpu() || address % tensor.element_size() == 0) {
            copies.back().copy_(tensor);
        } else if (is_plain) {  // PyTorch's own copy of complex numbers at such an address ends the process
            std::memcpy(copies.back().mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
        } else {
            fail(name, " was given complex numbers with gaps, at an address that is no multiple of their size.");
        }
        return copies.back();
    }
    static size_t alignment(const at::Tensor& tensor) {
        return tensor.is_complex() ? tensor.element_size() / 2 : tensor.element_size();
    }

    d5_tensor view(const at::Tensor& tensor, at::Device device) const {
        d5_tensor view = {
            nullptr, device.is_cpu() ? D5_CPU : D5_CUDA, device.is_cpu() ? 0 : device.index(), -1, {}, nullptr, nullptr,
            0};
        view.dtype.lanes = 1;
        if (!tensor.defined()) return view;
        view.data = const_cast<void*>(tensor.const_data_ptr());
        view.ndim = static_cast<int32_t>(tensor.dim());
        view.dtype = border_dtype(name, tensor.scalar_type());
        view.shape = tensor.sizes().data();
        return view;
    }

    void call(d5_function function, at::TensorList given, at::TensorList results, at::Device device) const {
        Tensors copies;
        copies.reserve(given.size());
        c10::SmallVector<d5_tensor, 8> inputs;
        c10::SmallVector<d5_tensor, 8> outputs;
        for (const at::Tensor& tensor : given) {
            inputs.push_back(view(tensor.defined() ? dense(tensor, copies) : tensor, device));
        }
        for (const at::Tensor& tensor : results) outputs.push_back(view(tensor, device));
        c10::OptionalDeviceGuard guard;
        void* stream = nullptr;
        if (device.is_cuda()) {
            guard.reset_device(device);
            stream = current_stream(c10::impl::VirtualGuardImpl(device.type()), device, 0);
        }
        char error[kErrorBytes];
        error[0] = '\0';
        const d5_call call = {DEEP500_ABI_VERSION,
                              device.is_cpu() ? D5_CPU : D5_CUDA,
                              static_cast<int32_t>(inputs.size()),
                              static_cast<int32_t>(outputs.size()),
                              static_cast<int32_t>(attributes.views().size()),
                              0,
                              inputs.data(),
                              outputs.data(),
                              attributes.views().data(),
                              stream,
                              error,
                              kErrorBytes};
        if (function(&call) == D5_OK) return;
        error[kErrorBytes - 1] = '\0';
        fail(name, ": ", error[0] == '\0' ? "failed without a message" : error);
    }

    mutable std::mutex mutex_;
    mutable std::unordered_map<std::vector<int64_t>, std::shared_ptr<const TensorTypes>, Hash> known_;
};

}  // namespace deep500

#endif
