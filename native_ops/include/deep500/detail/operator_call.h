// How the struct of an operator is checked, described and called.
#ifndef DEEP500_DETAIL_OPERATOR_CALL_H
#define DEEP500_DETAIL_OPERATOR_CALL_H

#include <deep500/detail/call.h>
#include <deep500/detail/description.h>

namespace deep500 {
namespace detail {

// The types for which an operator's templates are instantiated; TypeList<void> for functions that are no templates.
template <typename Op, typename = void>
struct DtypesOf {
    using type = TypeList<void>;
};
template <typename Op>
struct DtypesOf<Op, std::void_t<decltype(Op::dtypes)>> {
    using type = std::remove_cv_t<decltype(Op::dtypes)>;
};

template <typename Op, typename = void>
struct ReadsInputs : std::true_type {};
template <typename Op>
struct ReadsInputs<Op, std::void_t<decltype(Op::backward_reads_inputs)>>
    : std::bool_constant<Op::backward_reads_inputs> {};
template <typename Op, typename = void>
struct ReadsOutputs : std::true_type {};
template <typename Op>
struct ReadsOutputs<Op, std::void_t<decltype(Op::backward_reads_outputs)>>
    : std::bool_constant<Op::backward_reads_outputs> {};

template <typename Op>
constexpr BackwardReads backward_reads = {ReadsInputs<Op>::value, ReadsOutputs<Op>::value, false};

// A function for T, on the CPU or, if compiled by nvcc, on the GPU.
template <typename Op, typename T, typename Member>
constexpr Signature signature_of = Member::template of<Op, T>::signature;
template <typename Op, typename T, typename Member>
constexpr Signature cuda_signature_of = kWithCuda ? signature_of<Op, T, Member> : Signature{};

// What forward takes; an operator may exist for the GPU only.
template <typename Op, typename T>
constexpr Signature primary_forward =
    signature_of<Op, T, forward_member>.exists ? signature_of<Op, T, forward_member>
                                               : cuda_signature_of<Op, T, forward_cuda_member>;

struct Forward {
    using cpu = forward_member;
    using cuda = forward_cuda_member;
    static constexpr const char* absent = "the operator has no forward";
    static constexpr Layout layout(const Signature& forward, BackwardReads) { return forward_layout(forward); }
};
struct Backward {
    using cpu = backward_member;
    using cuda = backward_cuda_member;
    static constexpr const char* absent = "the operator cannot be differentiated: it has no backward";
    static constexpr Layout layout(const Signature& forward, BackwardReads reads) {
        return backward_layout(forward, reads);
    }
};
struct Second {
    using cpu = second_member;
    using cuda = second_cuda_member;
    static constexpr const char* absent = "the operator cannot be differentiated twice: it has no second";
    static constexpr Layout layout(const Signature& forward, BackwardReads reads) {
        return second_layout(forward, reads);
    }
};

template <typename Op, typename T, typename Which>
constexpr Layout layout_of = Which::layout(primary_forward<Op, T>, backward_reads<Op>);

// The checks of one variant. Each holds where an earlier one fails, so that only the first says something.
template <typename Op, typename T>
struct CheckOne {
    static constexpr Signature forward = primary_forward<Op, T>;
    static constexpr Signature backward = signature_of<Op, T, backward_member>;
    static constexpr Signature second = signature_of<Op, T, second_member>;

    static constexpr bool good(const Signature& f) { return !f.exists || (f.is_static && f.returns_void); }
    template <typename Which>
    static constexpr bool fits(const Signature& f) {
        constexpr Layout layout = layout_of<Op, T, Which>;
        return !f.exists || (good(f) && f.only_known_kinds() && f.in_order() && counts_fit(f, layout) &&
                             dtypes_fit(f, layout) && optionals_fit(f, layout));
    }
    template <typename Which>
    static constexpr bool cuda_one_fits() {
        return fits<Which>(cuda_signature_of<Op, T, typename Which::cuda>);
    }

    static constexpr bool has_forward = forward.exists;
    static constexpr bool is_static = !has_forward || forward.is_static;
    static constexpr bool returns_void = !has_forward || forward.returns_void;
    static constexpr bool has_few_tensors = !has_forward || forward.has_few_tensors();
    static constexpr bool has_only_views = !has_forward || forward.only_known_kinds();
    static constexpr bool has_only_dtypes = !has_only_views || forward.only_known_dtypes();
    static constexpr bool is_in_order = !has_only_views || forward.in_order();
    static constexpr bool has_outputs = !has_only_views || !is_in_order || !has_forward || forward.outputs() > 0;
    static constexpr bool forward_is_right = has_forward && is_static && returns_void && has_few_tensors &&
                                             has_only_views && has_only_dtypes && is_in_order && has_outputs;
    static constexpr bool backward_is_static = !forward_is_right || (good(backward) && good(second));
    static constexpr bool backward_has_only_views = !forward_is_right || backward.only_known_kinds();
    static constexpr bool backward_is_in_order = !backward_has_only_views || !forward_is_right || backward.in_order();
    static constexpr bool backward_is_checked =
        forward_is_right && backward.exists && backward_has_only_views && backward_is_in_order;
    static constexpr bool backward_counts_fit =
        !backward_is_checked || counts_fit(backward, layout_of<Op, T, Backward>);
    static constexpr bool backward_dtypes_fit =
        !backward_is_checked || !backward_counts_fit || dtypes_fit(backward, layout_of<Op, T, Backward>);
    static constexpr bool backward_optionals_fit =
        !backward_is_checked || !backward_counts_fit || optionals_fit(backward, layout_of<Op, T, Backward>);
    static constexpr bool second_fits = !forward_is_right || !backward_dtypes_fit || fits<Second>(second);
    static constexpr bool cuda_fits =
        !forward_is_right || (cuda_one_fits<Forward>() && cuda_one_fits<Backward>() && cuda_one_fits<Second>());
    static constexpr bool all = forward_is_right && backward_is_static && backward_has_only_views &&
                                backward_is_in_order && backward_counts_fit && backward_dtypes_fit &&
                                backward_optionals_fit && second_fits && cuda_fits;
};

// The checks of all variants.
template <typename Op, typename List>
struct CheckList;
template <typename Op, typename... T>
struct CheckList<Op, TypeList<T...>> {
    static constexpr bool has_forward = (CheckOne<Op, T>::has_forward && ...);
    static constexpr bool is_static = (CheckOne<Op, T>::is_static && ...);
    static constexpr bool returns_void = (CheckOne<Op, T>::returns_void && ...);
    static constexpr bool has_few_tensors = (CheckOne<Op, T>::has_few_tensors && ...);
    static constexpr bool has_only_views = (CheckOne<Op, T>::has_only_views && ...);
    static constexpr bool has_only_dtypes = (CheckOne<Op, T>::has_only_dtypes && ...);
    static constexpr bool has_outputs = (CheckOne<Op, T>::has_outputs && ...);
    static constexpr bool is_in_order = (CheckOne<Op, T>::is_in_order && ...);
    static constexpr bool backward_is_static = (CheckOne<Op, T>::backward_is_static && ...);
    static constexpr bool backward_has_only_views = (CheckOne<Op, T>::backward_has_only_views && ...);
    static constexpr bool backward_is_in_order = (CheckOne<Op, T>::backward_is_in_order && ...);
    static constexpr bool backward_counts_fit = (CheckOne<Op, T>::backward_counts_fit && ...);
    static constexpr bool backward_dtypes_fit = (CheckOne<Op, T>::backward_dtypes_fit && ...);
    static constexpr bool backward_optionals_fit = (CheckOne<Op, T>::backward_optionals_fit && ...);
    static constexpr bool second_fits = (CheckOne<Op, T>::second_fits && ...);
    static constexpr bool cuda_fits = (CheckOne<Op, T>::cuda_fits && ...);
    static constexpr bool all = (CheckOne<Op, T>::all && ...);
};
template <typename Op>
struct Check : CheckList<Op, typename DtypesOf<Op>::type> {};

template <typename Member>
void call_function(const d5_call& call, const Layout& layout, const void*) {
    Context context(call, layout);
    apply(typename Member::parameters(), context, Member::pointer);
}

template <typename Op, typename Which, typename T>
constexpr Variant make_variant() {
    using Cpu = typename Which::cpu::template of<Op, T>;
    using Cuda = typename Which::cuda::template of<Op, T>;
    Variant variant = {&layout_of<Op, T, Which>, nullptr, nullptr};
    if constexpr (Cpu::signature.exists) variant.cpu = call_function<Cpu>;
    if constexpr (kWithCuda && Cuda::signature.exists) variant.cuda = call_function<Cuda>;
    return variant;
}

template <typename Op, typename Which, typename... T>
int32_t run_matching(const d5_call* call, TypeList<T...>) {
    static constexpr Variant variants[] = {make_variant<Op, Which, T>()...};
    return guarded(call, [](const d5_call& c) { run_variant(c, variants, sizeof...(T), Which::absent); });
}

// The function of the border.
template <typename Op, typename Which>
int32_t run(const d5_call* call) {
    if constexpr (Check<Op>::all) {  // else the checks have said why
        return run_matching<Op, Which>(call, typename DtypesOf<Op>::type());
    } else {
        return D5_FAILED;
    }
}

template <typename Op, typename = void>
struct AttributesOf {
    static void add_to(Description&) {}
};
template <typename Op>
struct AttributesOf<Op, std::void_t<decltype(Op::attributes)>> {
    static void add_to(Description& description) {
        for (const DeclaredAttribute& declared : Op::attributes.list) description.add_attribute(declared);
    }
};

template <typename Op, typename First, typename... T>
D500_COLD void describe_functions(Description& description, TypeList<First, T...>) {
    const Signature& forward = primary_forward<Op, First>;
    description.inputs = forward.inputs();
    description.outputs = forward.outputs();
    for (int i = 0; i < forward.inputs(); ++i) {
        if (forward.kinds[i] == Kind::kOptionalInput) description.optional_inputs.add(std::to_string(i));
    }
    const bool on_cpu = signature_of<Op, First, forward_member>.exists;
    if (on_cpu) description.devices.add(quoted("cpu"));
    if (cuda_signature_of<Op, First, forward_cuda_member>.exists) description.devices.add(quoted("cuda"));
    description.differentiable = on_cpu ? signature_of<Op, First, backward_member>.exists
                                        : cuda_signature_of<Op, First, backward_cuda_member>.exists;
    description.twice_differentiable = on_cpu ? signature_of<Op, First, second_member>.exists
                                              : cuda_signature_of<Op, First, second_cuda_member>.exists;
    description.reads = backward_reads<Op>;
    description.add_signature(forward);
    (description.add_signature(primary_forward<Op, T>), ...);
    // Without variants, the "dtype" is that of the first tensor.
    if constexpr (std::is_void<First>::value) {
        description.dtypes.add(quoted(dtype_name(forward.dtypes[0])));
    } else {
        description.dtypes.add(quoted(DtypeOf<First>::name));
        (description.dtypes.add(quoted(DtypeOf<T>::name)), ...);
    }
}

template <typename Op>
D500_COLD std::string describe(const char* name) {
    Description description;
    description.name = name;
    if constexpr (Check<Op>::all) {
        describe_functions<Op>(description, typename DtypesOf<Op>::type());
        AttributesOf<Op>::add_to(description);
    }
    return description.json();
}

}  // namespace detail
}  // namespace deep500

#endif
