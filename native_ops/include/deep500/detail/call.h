// From a d5_call to a call of the author's function, and from its exceptions to a status and a message.
#ifndef DEEP500_DETAIL_CALL_H
#define DEEP500_DETAIL_CALL_H

#include <deep500/detail/signature.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <tuple>
#include <vector>

namespace deep500 {
namespace detail {

#ifdef __CUDACC__
constexpr bool kWithCuda = true;
inline void check_cuda(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    std::string message = "CUDA: ";
    append(message, what);
    append(message, " failed: ");
    append(message, cudaGetErrorString(status));
    throw std::runtime_error(message);
}
#else
constexpr bool kWithCuda = false;
#endif

inline bool is_absent(const d5_tensor& tensor) {
    return tensor.ndim < 0;
}

#ifdef __CUDACC__
// Makes the device of a call's tensors the current one, and later the former one again.
class CudaDevice {
  public:
    explicit CudaDevice(const d5_call& call) {
        const cudaError_t status = cudaGetDevice(&former_);
        if (status != cudaSuccess) {
            throw std::runtime_error(std::string("there is no CUDA device that can be used: ") +
                                     cudaGetErrorString(status));
        }
        for (int i = 0; i < call.input_count + call.output_count; ++i) {
            const d5_tensor& tensor = i < call.input_count ? call.inputs[i] : call.outputs[i - call.input_count];
            if (is_absent(tensor)) continue;
            check_cuda(cudaSetDevice(tensor.device_id), "choosing the device");
            break;
        }
    }
    ~CudaDevice() { cudaSetDevice(former_); }

  private:
    int former_ = 0;
};
#endif

inline int64_t element_count(const d5_tensor& tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
    return count;
}

inline bool is_contiguous(const d5_tensor& tensor) {
    if (tensor.strides == nullptr || element_count(tensor) == 0) return true;
    int64_t expected = 1;
    for (int i = tensor.ndim - 1; i >= 0; --i) {
        if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
        expected *= tensor.shape[i];
    }
    return true;
}

inline bool same_shape(const d5_tensor& a, const d5_tensor& b) {
    if (a.ndim != b.ndim) return false;
    for (int i = 0; i < a.ndim; ++i) {
        if (a.shape[i] != b.shape[i]) return false;
    }
    return true;
}

// Memory for one call: on the call's device, filled with zeros.
class Scratch {
  public:
    Scratch(size_t size_bytes, const d5_call& call) : stream_(call.stream), on_cuda_(call.device_type == D5_CUDA) {
        if (size_bytes == 0) return;
#ifdef __CUDACC__
        if (on_cuda_) {
            const cudaStream_t stream = static_cast<cudaStream_t>(stream_);
            check_cuda(cudaMallocAsync(&data_, size_bytes, stream), "taking memory");
            check_cuda(cudaMemsetAsync(data_, 0, size_bytes, stream), "filling memory");
            return;
        }
#endif
        data_ = std::calloc(1, size_bytes);
        if (data_ == nullptr) throw std::bad_alloc();
    }
    Scratch(Scratch&& other) noexcept : data_(other.data_), stream_(other.stream_), on_cuda_(other.on_cuda_) {
        other.data_ = nullptr;
    }
    Scratch& operator=(Scratch&&) = delete;
    ~Scratch() {
#ifdef __CUDACC__
        if (on_cuda_ && data_ != nullptr) cudaFreeAsync(data_, static_cast<cudaStream_t>(stream_));
#endif
        if (!on_cuda_) std::free(data_);
    }
    void* data() const { return data_; }

  private:
    void* data_ = nullptr;
    void* stream_;
    bool on_cuda_;
};

// A call, checked, with what the author's function will be given.
class Context {
  public:
    Context(const d5_call& call, const Layout& layout) : call_(call), layout_(layout) {}

    Attributes attributes() const { return Attributes(call_.attributes, call_.attribute_count); }
    Stream stream() const { return static_cast<Stream>(call_.stream); }

    // The tensor behind a parameter; with another's shape and zeros where it is absent and may not be.
    D500_NOINLINE d5_tensor tensor(int parameter) {
        const bool reads = parameter < layout_.read_count;
        const Slot& slot = reads ? layout_.read[parameter] : layout_.written[parameter - layout_.read_count];
        const d5_tensor& given = reads ? call_.inputs[slot.place] : call_.outputs[slot.place];
        if (!is_absent(given)) return given;
        const char* kind = reads ? "input " : "output ";
        require(slot.twin >= 0 && !is_absent(call_.inputs[slot.twin]), kind, slot.place,
                " is absent; it has to be given");
        d5_tensor filled = call_.inputs[slot.twin];
        scratch_.emplace_back(static_cast<size_t>(element_count(filled)) * (slot.dtype % 1000 / 8), call_);
        filled.data = scratch_.back().data();
        filled.byte_offset = 0;
        return filled;
    }
    D500_NOINLINE bool is_given(int parameter) const {
        if (parameter < layout_.read_count) return !is_absent(call_.inputs[layout_.read[parameter].place]);
        return !is_absent(call_.outputs[layout_.written[parameter - layout_.read_count].place]);
    }

  private:
    const d5_call& call_;
    const Layout& layout_;
    std::vector<Scratch> scratch_;
};

template <typename T>
View<T> make_view(const d5_tensor& tensor) {
    char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    return View<T>(reinterpret_cast<T*>(data), tensor.shape, tensor.ndim);
}

template <typename P>
struct Argument;
template <typename T>
struct Argument<View<T>> {
    static View<T> make(Context& context, int parameter) { return make_view<T>(context.tensor(parameter)); }
};
template <typename T>
struct Argument<Optional<T>> {
    static Optional<T> make(Context& context, int parameter) {
        if (!context.is_given(parameter)) return Optional<T>();
        return Optional<T>(make_view<T>(context.tensor(parameter)));
    }
};
template <typename T>
struct Argument<T*> {
    static T* make(Context& context, int parameter) { return make_view<T>(context.tensor(parameter)).data(); }
};
template <>
struct Argument<Attributes> {
    static Attributes make(Context& context, int) { return context.attributes(); }
};
template <>
struct Argument<Stream> {
    static Stream make(Context& context, int) { return context.stream(); }
};

template <typename... P, size_t... index, typename Function>
void apply(TypeList<P...>, std::index_sequence<index...>, Context& context, Function&& function) {
    std::tuple<P...> arguments{Argument<P>::make(context, static_cast<int>(index))...};
    std::apply(function, arguments);
}

template <typename... P, typename Function>
void apply(TypeList<P...> parameters, Context& context, Function&& function) {
    apply(parameters, std::index_sequence_for<P...>(), context, function);
}

D500_NOINLINE inline void check_tensor(const d5_call& call, const d5_tensor& tensor, const char* kind, int place) {
    if (is_absent(tensor)) return;
    require(tensor.device_type == call.device_type, kind, place, " is on another device than the call");
    for (int i = 0; i < tensor.ndim; ++i) require(tensor.shape[i] >= 0, kind, place, " has a negative size");
    require(is_contiguous(tensor), kind, place, " is not row-major without gaps; the caller has to copy it");
    require(tensor.data != nullptr || element_count(tensor) == 0, kind, place, " has no data");
}

// Checks all that does not depend on dtypes.
D500_NOINLINE inline void check_call(const d5_call& call, const Layout& layout) {
    require(call.abi_version == DEEP500_ABI_VERSION, "the caller has version ", call.abi_version,
            " of the border, the operator was compiled for version ", DEEP500_ABI_VERSION);
    require(call.input_count == layout.input_count, call.input_count, " inputs were given, accepted are ",
            layout.input_count);
    require(call.output_count == layout.output_count, call.output_count, " outputs were given, accepted are ",
            layout.output_count);
    for (int i = 0; i < call.input_count; ++i) check_tensor(call, call.inputs[i], "input ", i);
    for (int i = 0; i < call.output_count; ++i) check_tensor(call, call.outputs[i], "output ", i);
    for (int i = 0; i < layout.read_count; ++i) {
        const Slot& slot = layout.read[i];
        if (slot.twin < 0 || is_absent(call.inputs[slot.place]) || is_absent(call.inputs[slot.twin])) continue;
        require(same_shape(call.inputs[slot.place], call.inputs[slot.twin]), "inputs ", slot.place, " and ", slot.twin,
                ", a gradient and its tensor, differ in shape");
    }
    for (int i = 0; i < layout.written_count; ++i) {
        const Slot& slot = layout.written[i];
        if (slot.twin < 0 || is_absent(call.outputs[slot.place]) || is_absent(call.inputs[slot.twin])) continue;
        require(same_shape(call.outputs[slot.place], call.inputs[slot.twin]), "output ", slot.place, " and input ",
                slot.twin, ", a gradient and its tensor, differ in shape");
    }
}

// Whether the tensors of a call have the dtypes of a layout.
D500_NOINLINE inline bool dtypes_match(const d5_call& call, const Layout& layout) {
    for (int i = 0; i < layout.read_count; ++i) {
        const d5_tensor& tensor = call.inputs[layout.read[i].place];
        if (!is_absent(tensor) && dtype_id(tensor.dtype) != layout.read[i].dtype) return false;
    }
    for (int i = 0; i < layout.written_count; ++i) {
        const d5_tensor& tensor = call.outputs[layout.written[i].place];
        if (!is_absent(tensor) && dtype_id(tensor.dtype) != layout.written[i].dtype) return false;
    }
    return true;
}

// Fills gradients that are asked for and that the function does not write: they are 0.
D500_NOINLINE inline void fill_unwritten(const d5_call& call, const Layout& layout) {
    for (int i = 0; i < call.output_count; ++i) {
        const d5_tensor& tensor = call.outputs[i];
        bool written = is_absent(tensor) || element_count(tensor) == 0;
        for (int j = 0; j < layout.written_count; ++j) written = written || layout.written[j].place == i;
        if (written) continue;
        char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
        const size_t size_bytes = static_cast<size_t>(element_count(tensor)) * tensor.dtype.bits / 8;
#ifdef __CUDACC__
        if (call.device_type == D5_CUDA) {
            check_cuda(cudaMemsetAsync(data, 0, size_bytes, static_cast<cudaStream_t>(call.stream)), "filling memory");
            continue;
        }
#endif
        memset(data, 0, size_bytes);
    }
}

D500_COLD inline std::string dtypes_of_call(const d5_call& call) {
    std::string text;
    for (int i = 0; i < call.input_count; ++i) {
        if (i > 0) text += ", ";
        text += is_absent(call.inputs[i]) ? "none" : dtype_name(dtype_id(call.inputs[i].dtype));
    }
    return "(" + text + ")";
}

// One variant of a function as a call finds it: the tensors that it takes, and the code for each device, null where
// there is none. `data` is what run_variant was given.
struct Variant {
    const Layout* layout;
    void (*cpu)(const d5_call&, const Layout&, const void* data);
    void (*cuda)(const d5_call&, const Layout&, const void* data);
};

D500_COLD inline std::string dtypes_of_variants(const Variant* variants, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        text += i > 0 ? ", (" : "(";
        for (int j = 0; j < variants[i].layout->read_count; ++j) {
            text += (j > 0 ? ", " : "") + dtype_name(variants[i].layout->read[j].dtype);
        }
        text += ")";
    }
    return text;
}

// Finds the variant for a call's dtypes and runs it.
D500_NOINLINE inline void run_variant(const d5_call& call, const Variant* variants, int count, const char* absent,
                                      const void* data = nullptr) {
    for (int i = 0; i < count; ++i) {
        const Layout& layout = *variants[i].layout;
        check_call(call, layout);
        if (!dtypes_match(call, layout)) continue;
        require(variants[i].cpu != nullptr || variants[i].cuda != nullptr, absent);
        if (call.device_type == D5_CPU) {
            require(variants[i].cpu != nullptr, "the operator has no code for the CPU");
            fill_unwritten(call, layout);
            variants[i].cpu(call, layout, data);
            return;
        }
        require(call.device_type == D5_CUDA, "device type ", call.device_type, " is neither the CPU nor CUDA");
        require(variants[i].cuda != nullptr,
                "the operator has no code for CUDA: write forward_cuda and backward_cuda, "
                "and compile it as a .cu file");
#ifdef __CUDACC__
        const CudaDevice device(call);
        fill_unwritten(call, layout);
        variants[i].cuda(call, layout, data);
        check_cuda(cudaGetLastError(), "starting a kernel");
#endif
        return;
    }
    throw DtypeError("there is no variant for tensors of " + dtypes_of_call(call) + "; accepted are " +
                     dtypes_of_variants(variants, count));
}

D500_COLD inline int32_t failed(const d5_call& call, int32_t status, const char* message) {
    if (call.error != nullptr && call.error_size_bytes > 0) {
        std::snprintf(call.error, static_cast<size_t>(call.error_size_bytes), "%s", message);
    }
    return status;
}

// Runs a function; nothing that it throws comes out.
template <typename Function>
int32_t guarded(const d5_call* call, Function&& function) {
    if (call == nullptr) return D5_WRONG_ARGUMENTS;
    try {
        function(*call);
        return D5_OK;
    } catch (const DtypeError& error) {
        return failed(*call, D5_UNSUPPORTED_DTYPE, error.what());
    } catch (const ArgumentError& error) {
        return failed(*call, D5_WRONG_ARGUMENTS, error.what());
    } catch (const std::bad_alloc&) {
        return failed(*call, D5_FAILED, "there is not enough memory");
    } catch (const std::exception& error) {
        return failed(*call, D5_FAILED, error.what());
    } catch (...) {
        return failed(*call, D5_FAILED, "the operator threw something that is no std::exception");
    }
}

}  // namespace detail
}  // namespace deep500

#endif
