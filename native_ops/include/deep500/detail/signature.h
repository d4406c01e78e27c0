// What the parameters of an author's functions say of an operator, worked out while compiling.
#ifndef DEEP500_DETAIL_SIGNATURE_H
#define DEEP500_DETAIL_SIGNATURE_H

#include <deep500/tensor.h>

#include <utility>

namespace deep500 {
namespace detail {

// The most inputs and outputs, together, that an operator may have; then second reads twice as many at most.
constexpr int kMaxTensors = 32;
constexpr int kMaxSlots = 2 * kMaxTensors + 8;

enum class Kind { kInput, kOptionalInput, kOutput, kOptionalOutput, kAttributes, kStream, kOther };

// One parameter: what it is, and the dtype of its elements (0 where no tensor can have it).
template <typename P>
struct Parameter {
    static constexpr Kind kind = Kind::kOther;
    static constexpr int dtype = 0;
};
template <typename T, bool optional>
struct TensorParameter {
    static constexpr Kind kind = std::is_const<T>::value ? (optional ? Kind::kOptionalInput : Kind::kInput)
                                                         : (optional ? Kind::kOptionalOutput : Kind::kOutput);
    static constexpr int dtype = dtype_id<T>();
};
template <typename T>
struct Parameter<View<T>> : TensorParameter<T, false> {};
template <typename T>
struct Parameter<Optional<T>> : TensorParameter<T, true> {};
template <typename T>
struct Parameter<T*> : TensorParameter<T, false> {};
template <>
struct Parameter<Attributes> : Parameter<void> {
    static constexpr Kind kind = Kind::kAttributes;
};
template <>
struct Parameter<Stream> : Parameter<void> {
    static constexpr Kind kind = Kind::kStream;
};

template <typename P>
using plain = std::remove_cv_t<std::remove_reference_t<P>>;

// A function's signature, as values.
struct Signature {
    bool exists = false;    // and can be called
    bool is_static = true;  // or is a member of a class of which there are objects
    bool returns_void = true;
    bool is_small = true;
    int count = 0;
    Kind kinds[kMaxSlots] = {};
    int dtypes[kMaxSlots] = {};

    constexpr int inputs() const { return count_of(Kind::kInput, Kind::kOptionalInput); }
    constexpr int outputs() const { return count_of(Kind::kOutput, Kind::kOptionalOutput); }
    constexpr int count_of(Kind a, Kind b) const {
        int found = 0;
        for (int i = 0; i < count; ++i) found += kinds[i] == a || kinds[i] == b;
        return found;
    }
    constexpr bool has_few_tensors() const { return is_small && inputs() + outputs() <= kMaxTensors; }
    constexpr bool is_optional(int i) const {
        return kinds[i] == Kind::kOptionalInput || kinds[i] == Kind::kOptionalOutput;
    }
    constexpr bool only_known_kinds() const { return count_of(Kind::kOther, Kind::kOther) == 0; }
    constexpr bool only_known_dtypes() const {
        for (int i = 0; i < inputs() + outputs(); ++i) {
            if (dtypes[i] == 0) return false;
        }
        return true;
    }
    // Inputs come first, then outputs, then attributes and stream.
    constexpr bool in_order() const {
        for (int i = 1; i < count; ++i) {
            if (rank_of(kinds[i]) < rank_of(kinds[i - 1])) return false;
        }
        return true;
    }

  private:
    static constexpr int rank_of(Kind kind) {
        return kind == Kind::kInput || kind == Kind::kOptionalInput     ? 0
               : kind == Kind::kOutput || kind == Kind::kOptionalOutput ? 1
                                                                        : 2;
    }
};

template <typename P>
constexpr void add_parameter(Signature& signature) {
    if (signature.count == kMaxSlots) {  // said by a check
        signature.is_small = false;
        return;
    }
    signature.kinds[signature.count] = Parameter<plain<P>>::kind;
    signature.dtypes[signature.count] = Parameter<plain<P>>::dtype;
    ++signature.count;
}

template <bool is_static, typename R, typename... P>
constexpr Signature make_signature() {
    Signature signature;
    signature.exists = true;
    signature.is_static = is_static;
    signature.returns_void = std::is_void<R>::value;
    (add_parameter<P>(signature), ...);
    return signature;
}

// From the type of a pointer to a function to its signature and its parameters.
template <typename F>
struct FunctionOf {
    static constexpr Signature signature = {};
};
template <typename R, typename... P>
struct FunctionOf<R (*)(P...)> {
    static constexpr Signature signature = make_signature<true, R, P...>();
    using parameters = TypeList<plain<P>...>;
};
template <typename R, typename... P>
struct FunctionOf<R (*)(P...) noexcept> : FunctionOf<R (*)(P...)> {};
template <typename R, typename C, typename... P>
struct FunctionOf<R (C::*)(P...)> {
    static constexpr Signature signature = make_signature<false, R, P...>();
    using parameters = TypeList<plain<P>...>;
};
template <typename R, typename C, typename... P>
struct FunctionOf<R (C::*)(P...) const> : FunctionOf<R (C::*)(P...)> {};
template <typename R, typename C, typename... P>
struct FunctionOf<R (C::*)(P...) noexcept> : FunctionOf<R (C::*)(P...)> {};
template <typename R, typename C, typename... P>
struct FunctionOf<R (C::*)(P...) const noexcept> : FunctionOf<R (C::*)(P...)> {};

// One member function by name: as a template for an element type T, or as it is where T is void.
#define D500_MEMBER(NAME)                                                                                         \
    template <typename Op, typename T, typename = void>                                                           \
    struct Member_##NAME : FunctionOf<void> {};                                                                   \
    template <typename Op, typename T>                                                                            \
    struct Member_##NAME<Op, T,                                                                                   \
                         std::void_t<std::enable_if_t<!std::is_void<T>::value>, decltype(&Op::template NAME<T>)>> \
        : FunctionOf<decltype(&Op::template NAME<T>)> {                                                           \
        static constexpr auto pointer = &Op::template NAME<T>;                                                    \
    };                                                                                                            \
    template <typename Op>                                                                                        \
    struct Member_##NAME<Op, void, std::void_t<decltype(&Op::NAME)>> : FunctionOf<decltype(&Op::NAME)> {          \
        static constexpr auto pointer = &Op::NAME;                                                                \
    };                                                                                                            \
    struct NAME##_member {                                                                                        \
        template <typename Op, typename T>                                                                        \
        using of = Member_##NAME<Op, T>;                                                                          \
    };
D500_MEMBER(forward)
D500_MEMBER(backward)
D500_MEMBER(second)
D500_MEMBER(forward_cuda)
D500_MEMBER(backward_cuda)
D500_MEMBER(second_cuda)
#undef D500_MEMBER

// One tensor of a call: its dtype, its place among the inputs or outputs of d5_call, and the input that has its shape.
struct Slot {
    int dtype = 0;
    int place = 0;
    int twin = -1;
    bool may_be_absent = false;  // an Optional of forward, or the gradient by one
};

// All tensors of a call.
struct Layout {
    int input_count = 0;   // of d5_call
    int output_count = 0;  // of d5_call
    int read_count = 0;    // of the function's parameters
    int written_count = 0;
    Slot read[kMaxSlots] = {};
    Slot written[kMaxSlots] = {};

    constexpr void reads(int dtype, int place, int twin, bool may_be_absent = false) {
        read[read_count++] = {dtype, place, twin, may_be_absent};
    }
    constexpr void writes(int dtype, int place, int twin, bool may_be_absent = false) {
        written[written_count++] = {dtype, place, twin, may_be_absent};
    }
};

// What a backward looks at. `all_dtypes` asks for gradients by tensors of every dtype, as raw pointers have them.
struct BackwardReads {
    bool inputs = true;
    bool outputs = true;
    bool all_dtypes = false;
};

constexpr Layout forward_layout(const Signature& forward) {
    Layout layout;
    if (!forward.has_few_tensors()) return layout;
    layout.input_count = forward.inputs();
    layout.output_count = forward.outputs();
    for (int i = 0; i < layout.input_count; ++i) layout.reads(forward.dtypes[i], i, -1);
    for (int i = 0; i < layout.output_count; ++i) layout.writes(forward.dtypes[layout.input_count + i], i, -1);
    return layout;
}

// The forward's outputs have gradients, its inputs get them: d5_call.inputs is (gradients, inputs, outputs).
constexpr Layout backward_layout(const Signature& forward, BackwardReads what) {
    const int in = forward.inputs(), out = forward.outputs();
    Layout layout;
    if (!forward.has_few_tensors()) return layout;
    layout.input_count = out + in + out;
    layout.output_count = in;
    for (int i = 0; i < out; ++i) {
        const int dtype = forward.dtypes[in + i];
        if (what.all_dtypes || is_differentiable(dtype)) layout.reads(dtype, i, out + in + i);
    }
    for (int i = 0; i < in && what.inputs; ++i) layout.reads(forward.dtypes[i], out + i, -1, forward.is_optional(i));
    for (int i = 0; i < out && what.outputs; ++i) layout.reads(forward.dtypes[in + i], out + in + i, -1);
    for (int i = 0; i < in; ++i) {
        if (!what.all_dtypes && !is_differentiable(forward.dtypes[i])) continue;
        layout.writes(forward.dtypes[i], i, out + i, forward.is_optional(i));
    }
    return layout;
}

// The same step once more, for the backward as the function that is differentiated.
constexpr Layout second_layout(const Signature& forward, BackwardReads what) {
    const Layout first = backward_layout(forward, what);
    const int in = first.output_count;
    const int grads = (first.input_count - in) / 2;
    Layout layout;
    layout.input_count = in + first.input_count;
    layout.output_count = first.input_count;
    for (int i = 0; i < first.written_count; ++i) {
        const Slot slot = first.written[i];
        layout.reads(slot.dtype, slot.place, in + grads + slot.place, slot.may_be_absent);
    }
    for (int i = 0; i < first.read_count; ++i) {
        const Slot slot = first.read[i];
        layout.reads(slot.dtype, in + slot.place, slot.twin < 0 ? -1 : in + slot.twin, slot.may_be_absent);
    }
    for (int i = 0; i < first.read_count; ++i) {
        const Slot slot = first.read[i];
        if (is_differentiable(slot.dtype)) layout.writes(slot.dtype, slot.place, in + slot.place, slot.may_be_absent);
    }
    return layout;
}

// Whether a function's parameters are those that a layout asks for.
constexpr bool counts_fit(const Signature& function, const Layout& layout) {
    return function.inputs() == layout.read_count && function.outputs() == layout.written_count;
}
constexpr bool dtypes_fit(const Signature& function, const Layout& layout) {
    for (int i = 0; i < layout.read_count; ++i) {
        if (function.dtypes[i] != layout.read[i].dtype) return false;
    }
    for (int i = 0; i < layout.written_count; ++i) {
        if (function.dtypes[layout.read_count + i] != layout.written[i].dtype) return false;
    }
    return true;
}

// Whether a function takes as Optional all that may be absent.
constexpr bool optionals_fit(const Signature& function, const Layout& layout) {
    for (int i = 0; i < layout.read_count; ++i) {
        if (layout.read[i].may_be_absent && !function.is_optional(i)) return false;
    }
    for (int i = 0; i < layout.written_count; ++i) {
        if (layout.written[i].may_be_absent && !function.is_optional(layout.read_count + i)) return false;
    }
    return true;
}

}  // namespace detail
}  // namespace deep500

#endif
