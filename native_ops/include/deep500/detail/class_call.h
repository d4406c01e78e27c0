// How the class of an operator is checked and described, and how its objects are made, kept and called.
#ifndef DEEP500_DETAIL_CLASS_CALL_H
#define DEEP500_DETAIL_CLASS_CALL_H

#include <deep500/detail/operator_call.h>

#include <map>
#include <memory>
#include <mutex>

namespace deep500 {
namespace detail {

struct NoFactory {};

}  // namespace detail
}  // namespace deep500

// Found where the author has none: any other function of this name fits better.
inline ::deep500::detail::NoFactory create_new_op(...) {
    return {};
}

namespace deep500 {
namespace detail {

// Pointers have gradients for every tensor.
constexpr BackwardReads kClassReads = {true, true, true};

template <typename Op, typename Member>
constexpr Signature class_signature = signature_of<Op, void, Member>;
template <typename Op>
constexpr Signature class_forward =
    class_signature<Op, forward_member>.exists || !kWithCuda ? class_signature<Op, forward_member>
                                                             : class_signature<Op, forward_cuda_member>;
template <typename Op, typename Which>
constexpr Layout class_layout = Which::layout(class_forward<Op>, kClassReads);

// Each holds where an earlier one fails, so that only the first says something.
template <typename Op>
struct CheckClass {
    static constexpr Signature forward = class_forward<Op>;
    static constexpr Signature backward = class_signature<Op, backward_member>;

    static constexpr bool is_operator = std::is_base_of<CustomOperator, Op>::value;
    static constexpr bool is_concrete = !is_operator || !std::is_abstract<Op>::value;
    static constexpr bool has_forward = !is_operator || forward.exists;
    static constexpr bool has_few_tensors = !is_operator || forward.has_few_tensors();
    static constexpr bool is_right =
        has_forward && is_operator && has_few_tensors && forward.only_known_kinds() && forward.only_known_dtypes();
    static constexpr bool has_only_pointers = !is_operator || !has_forward || !has_few_tensors || is_right;
    static constexpr bool pointers_in_order = !is_right || (forward.in_order() && forward.outputs() > 0);
    static constexpr bool is_checked = is_right && pointers_in_order && backward.exists;
    static constexpr bool backward_fits = !is_checked || (backward.only_known_kinds() && backward.in_order() &&
                                                          counts_fit(backward, class_layout<Op, Backward>) &&
                                                          dtypes_fit(backward, class_layout<Op, Backward>));
    template <typename Member, typename Which>
    static constexpr bool one_fits() {
        constexpr Signature f = class_signature<Op, Member>;
        return !f.exists || (f.only_known_kinds() && f.in_order() && counts_fit(f, class_layout<Op, Which>) &&
                             dtypes_fit(f, class_layout<Op, Which>));
    }
    static constexpr bool class_cuda_fits =
        !kWithCuda || !is_right || !pointers_in_order ||
        (one_fits<forward_cuda_member, Forward>() && one_fits<backward_cuda_member, Backward>());
    static constexpr bool all =
        is_operator && is_concrete && is_right && pointers_in_order && backward_fits && class_cuda_fits;
};

#define D500_SAYS_CLASS_(CONDITION, ...) \
    static_assert(::deep500::detail::CheckClass<__VA_ARGS__>::CONDITION, "deep500: " D500_TEXT_##CONDITION);
#define D500_CHECK_CLASS_(...)                       \
    D500_SAYS_CLASS_(is_operator, __VA_ARGS__)       \
    D500_SAYS_CLASS_(is_concrete, __VA_ARGS__)       \
    D500_SAYS_CLASS_(has_forward, __VA_ARGS__)       \
    D500_SAYS_CLASS_(has_few_tensors, __VA_ARGS__)   \
    D500_SAYS_CLASS_(has_only_pointers, __VA_ARGS__) \
    D500_SAYS_CLASS_(pointers_in_order, __VA_ARGS__) \
    D500_SAYS_CLASS_(backward_fits, __VA_ARGS__)     \
    D500_SAYS_CLASS_(class_cuda_fits, __VA_ARGS__)
#define D500_TEXT_is_operator "the class must derive from deep500::CustomOperator, publicly"
#define D500_TEXT_is_concrete "the class has pure virtual functions, so that there can be no object of it"
#define D500_TEXT_has_only_pointers                                                                                  \
    "a parameter of forward is no pointer to elements that tensors have. Accepted are 'const T*' for an input and "  \
    "'T*' for an output, where T is float, double, deep500::float16, deep500::bfloat16, int8_t to int64_t, uint8_t " \
    "to uint64_t, bool or std::complex of float or double"
#define D500_TEXT_pointers_in_order                                                                                   \
    "the parameters of forward are out of order, or a const is missing or too many: a const T* for each input comes " \
    "first, then a T* for each output, of which there is at least one"
#define D500_TEXT_backward_fits                                                                                     \
    "backward has the wrong parameters. It takes a 'const T*' for the gradient by each output, one for each input " \
    "and one for each output, then a 'T*' for the gradient by each input, all of the types of forward"
#define D500_TEXT_class_cuda_fits \
    "forward_cuda and backward_cuda must take the pointers of forward and backward, in the same order"

// The descriptors of one set of shapes, with the memory that they point to.
class Descriptors {
  public:
    explicit Descriptors(const d5_tensor* tensors, int count) : sizes_(count), list_(count) {
        for (int i = 0; i < count; ++i) {
            const d5_tensor& tensor = tensors[i];
            require(!is_absent(tensor), "a tensor is absent whose shape the operator's object needs");
            require(tensor.ndim <= 255, "a tensor has ", tensor.ndim, " dimensions, accepted are up to 255");
            for (int d = 0; d < tensor.ndim; ++d) {
                require(tensor.shape[d] <= 0xffffffffLL, "a size is too large for a descriptor: ", tensor.shape[d]);
                sizes_[i].push_back(static_cast<uint32_t>(tensor.shape[d]));
            }
            list_[i] = {type_of(dtype_id(tensor.dtype)), TORD_IRRELEVANT, static_cast<uint8_t>(tensor.ndim),
                        sizes_[i].data()};
        }
    }
    tensor_t* data() { return list_.data(); }
    int count() const { return static_cast<int>(list_.size()); }

  private:
    static tensortype_t type_of(int id) {
        const int ids[] = {0,
                           dtype_id<int8_t>(),
                           dtype_id<int16_t>(),
                           dtype_id<int32_t>(),
                           dtype_id<int64_t>(),
                           dtype_id<uint8_t>(),
                           dtype_id<uint16_t>(),
                           dtype_id<uint32_t>(),
                           dtype_id<uint64_t>(),
                           dtype_id<float16>(),
                           dtype_id<float>(),
                           dtype_id<double>(),
                           dtype_id<bool>(),
                           dtype_id<bfloat16>(),
                           dtype_id<std::complex<float>>(),
                           dtype_id<std::complex<double>>()};
        for (int type = 1; type < TT_LEN; ++type) {
            if (ids[type] == id) return static_cast<tensortype_t>(type);
        }
        return TT_VOID;
    }

    std::vector<std::vector<uint32_t>> sizes_;
    std::vector<tensor_t> list_;
};

template <typename Op, typename = void>
struct TakesLongSize : std::false_type {};
template <typename Op>
struct TakesLongSize<Op, std::void_t<decltype(Op{std::declval<int64_t>()})>> : std::true_type {};

// Makes an object where there is no create_new_op.
template <typename Op>
Op* construct(tensor_t* inputs, int input_count, tensor_t* outputs, int output_count) {
    constexpr bool from_all = std::is_constructible<Op, tensor_t*, int, tensor_t*, int>::value;
    static_assert(from_all || std::is_constructible<Op, int>::value || std::is_default_constructible<Op>::value,
                  "deep500: no object of the class can be made: write 'D500_EXPORTED void* "
                  "create_new_op(deep500::tensor_t* inputs, int num_inputs, deep500::tensor_t* outputs, int "
                  "num_outputs)', or a constructor that takes the number of elements of the first input");
    if constexpr (from_all) {
        return new Op(inputs, input_count, outputs, output_count);
    } else if constexpr (std::is_constructible<Op, int>::value) {
        require(input_count > 0, "the operator has no input whose number of elements its constructor could take");
        int64_t count = 1;
        for (int i = 0; i < inputs[0].dims; ++i) count *= inputs[0].sizes[i];
        if constexpr (TakesLongSize<Op>::value) {
            return new Op(count);
        } else {
            require(count <= std::numeric_limits<int>::max(), "the constructor takes an int, and the input has ", count,
                    " elements");
            return new Op(static_cast<int>(count));
        }
    } else {
        return new Op();
    }
}

template <typename Op>
Op* object_from(void* made, tensor_t*, int, tensor_t*, int) {
    return static_cast<Op*>(made);
}
template <typename Op>
Op* object_from(NoFactory, tensor_t* inputs, int input_count, tensor_t* outputs, int output_count) {
    return construct<Op>(inputs, input_count, outputs, output_count);
}

using Factory = void* (*)(tensor_t*, int, tensor_t*, int);

// The objects of a class, one for each set of dtypes and shapes.
template <typename Op>
class Objects {
  public:
    struct Entry {
        Entry(const d5_tensor* in, int in_count, const d5_tensor* out, int out_count, Factory create)
            : inputs(in, in_count), outputs(out, out_count) {
            object.reset(static_cast<Op*>(create(inputs.data(), in_count, outputs.data(), out_count)));
            if (object == nullptr) throw std::runtime_error("create_new_op returned no object");
        }
        Descriptors inputs, outputs;  // the object may keep pointers to them
        std::unique_ptr<Op> object;
        std::mutex mutex;
    };

    static Objects& all() {
        static Objects objects;
        return objects;
    }

    std::shared_ptr<Entry> get(const d5_tensor* in, int in_count, const d5_tensor* out, int out_count, Factory create) {
        thread_local std::vector<int64_t> key;
        key.clear();
        for (int i = 0; i < in_count + out_count; ++i) {
            const d5_tensor& tensor = i < in_count ? in[i] : out[i - in_count];
            require(!is_absent(tensor), "a tensor is absent whose shape the operator's object needs");
            key.push_back(dtype_id(tensor.dtype));
            key.push_back(tensor.ndim);
            key.insert(key.end(), tensor.shape, tensor.shape + tensor.ndim);
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = entries_.find(key);
        if (found != entries_.end()) return found->second;
        if (entries_.size() >= kMost) retire();
        return entries_[key] = std::make_shared<Entry>(in, in_count, out, out_count, create);
    }

    // The sum of what all objects report.
    int64_t report(void* data) {
        const std::lock_guard<std::mutex> lock(mutex_);
        int64_t sum = retired_;
        for (const auto& entry : entries_) {
            const std::lock_guard<std::mutex> object_lock(entry.second->mutex);
            sum += entry.second->object->report(data);
        }
        return sum;
    }

  private:
    static constexpr size_t kMost = 256;  // with shapes that never repeat, memory must not grow without end

    void retire() {
        for (const auto& entry : entries_) {
            const std::lock_guard<std::mutex> object_lock(entry.second->mutex);
            retired_ += entry.second->object->report(nullptr);
        }
        entries_.clear();  // an object in use lives until its call ends
    }

    std::mutex mutex_;
    std::map<std::vector<int64_t>, std::shared_ptr<Entry>> entries_;
    int64_t retired_ = 0;
};

// Calls a member function of the object for a call's shapes. `first` is the place of the forward's first input.
template <typename Op, typename Member>
void call_object(const d5_call& call, const Layout& layout, int first, const d5_tensor* outputs, Factory create) {
    const auto entry = Objects<Op>::all().get(call.inputs + first, class_forward<Op>.inputs(), outputs,
                                              class_forward<Op>.outputs(), create);
    const std::lock_guard<std::mutex> lock(entry->mutex);
    Op& object = *entry->object;
    require(call.device_type == D5_CPU || object.supports_cuda(), "the operator does not support CUDA");
    Context context(call, layout);
    const auto use = [&](auto... arguments) { (object.*Member::pointer)(arguments...); };
#ifdef __CUDACC__
    // Without a stream, kernels start on the default one, which does not wait for others.
    const bool alone = call.device_type == D5_CUDA && call.stream != nullptr &&
                       Member::signature.count_of(Kind::kStream, Kind::kStream) == 0;
    if (alone) check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(call.stream)), "waiting for the stream");
    apply(typename Member::parameters(), context, use);
    if (alone) check_cuda(cudaStreamSynchronize(nullptr), "waiting for the operator");
#else
    apply(typename Member::parameters(), context, use);
#endif
}

template <typename Op, typename Member, typename Which>
void call_class(const d5_call& call, const Layout& layout, const void* data) {
    const Factory create = *static_cast<const Factory*>(data);
    if constexpr (std::is_same<Which, Forward>::value) {
        call_object<Op, Member>(call, layout, 0, call.outputs, create);
    } else {
        constexpr int out = class_forward<Op>.outputs();
        call_object<Op, Member>(call, layout, out, call.inputs + out + class_forward<Op>.inputs(), create);
    }
}

template <typename Op, typename Which>
int32_t run_class(const d5_call* call, Factory create) {
    if constexpr (CheckClass<Op>::all) {  // else the checks have said why
        using Cpu = typename Which::cpu::template of<Op, void>;
        using Cuda = typename Which::cuda::template of<Op, void>;
        return guarded(call, [create](const d5_call& c) {
            Variant variant = {&class_layout<Op, Which>, nullptr, nullptr};
            if constexpr (Cpu::signature.exists) variant.cpu = call_class<Op, Cpu, Which>;
            if constexpr (kWithCuda && Cuda::signature.exists) variant.cuda = call_class<Op, Cuda, Which>;
            run_variant(c, &variant, 1, Which::absent, &create);
        });
    } else {
        return D5_FAILED;
    }
}

template <typename Op>
int64_t report_class(void* data) {
    return Objects<Op>::all().report(data);
}

template <typename Op>
D500_COLD std::string describe_class(const char* name) {
    Description description;
    description.name = name;
    if constexpr (CheckClass<Op>::all) {
        const Signature& forward = class_forward<Op>;
        description.inputs = forward.inputs();
        description.outputs = forward.outputs();
        description.dtypes.add(quoted(dtype_name(forward.dtypes[0])));
        description.add_signature(forward);
        const bool on_cpu = class_signature<Op, forward_member>.exists;
        const bool on_cuda = kWithCuda && class_signature<Op, forward_cuda_member>.exists;
        if (on_cpu) description.devices.add(quoted("cpu"));
        if (on_cuda) description.devices.add(quoted("cuda"));
        description.differentiable =
            on_cpu ? class_signature<Op, backward_member>.exists : class_signature<Op, backward_cuda_member>.exists;
    }
    return description.json();
}

}  // namespace detail
}  // namespace deep500

#endif
