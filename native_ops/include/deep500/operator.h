// An operator as a struct with static functions over typed views of tensors. For example
//
//   #include <deep500/operator.h>
//
//   struct Scale {
//       static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16>();
//       static constexpr auto attributes = deep500::attributes(deep500::real("factor", 2.0));
//
//       template <typename T>
//       static void forward(deep500::View<const T> x, deep500::View<T> y, deep500::Attributes attributes) {
//           const auto factor = static_cast<deep500::compute_type<T>>(attributes.real("factor"));
//           for (int64_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
//       }
//
//       template <typename T>
//       static void backward(deep500::View<const T> y_gradient, deep500::View<const T> x, deep500::View<const T> y,
//                            deep500::View<T> x_gradient, deep500::Attributes attributes) { ... }
//   };
//   D500_OPERATOR(scale, Scale)
//
// The parameters say what the operator takes:
//
//   forward   View<const T> an input, View<T> an output, then Attributes if the function wants them. An input of
//             a fixed type, such as View<const int64_t>, stays as it is for every T. Optional<const T> may be absent.
//   backward  The gradients by the outputs, the inputs and the outputs, all const; then a View<T> for the gradient
//             by each input. Gradients exist for floats only: tensors of other types have none. A View is always
//             there: filled with zeros where nobody knows a gradient, thrown away where nobody asks for one. Optional
//             tells. `static constexpr bool backward_reads_inputs = false;` leaves the inputs out,
//             backward_reads_outputs the outputs; frameworks then need not keep them.
//   second    The derivative of the backward, if there is one: the gradients by the backward's outputs, all that the
//             backward was given; then the gradients by all that (floats only).
//   *_cuda    The same with a deep500::Stream (cudaStream_t) at the end; compiled by nvcc.
//
// An input that is Optional in forward is Optional in backward, and so is the gradient by it. There are at most 32
// inputs and outputs together.
//
// A function that is no template has one variant, and needs no `dtypes`. All views are row-major without gaps: callers
// copy other tensors first. The shapes of outputs are the caller's, from infer(shapes, dtypes) in Python. Functions may
// be called by several threads at once.
#ifndef DEEP500_OPERATOR_H
#define DEEP500_OPERATOR_H

#include <deep500/detail/operator_call.h>

#define D500_EXPORTED extern "C" __attribute__((visibility("default")))

// Defines the functions of the border for an operator. What stands before the first comma is its name, a C identifier,
// the rest is the struct.
#define D500_OPERATOR(NAME, ...)                                                         \
    D500_CHECK_OPERATOR(__VA_ARGS__)                                                     \
    D500_EXPORTED const char* d5_##NAME##_describe(void) {                               \
        static const std::string text = ::deep500::detail::describe<__VA_ARGS__>(#NAME); \
        return text.c_str();                                                             \
    }                                                                                    \
    D500_EXPORTED int32_t d5_##NAME##_forward(const d5_call* call) {                     \
        return ::deep500::detail::run<__VA_ARGS__, ::deep500::detail::Forward>(call);    \
    }                                                                                    \
    D500_EXPORTED int32_t d5_##NAME##_backward(const d5_call* call) {                    \
        return ::deep500::detail::run<__VA_ARGS__, ::deep500::detail::Backward>(call);   \
    }                                                                                    \
    D500_EXPORTED int32_t d5_##NAME##_second(const d5_call* call) {                      \
        return ::deep500::detail::run<__VA_ARGS__, ::deep500::detail::Second>(call);     \
    }

#define D500_SAYS_(CONDITION, ...) \
    static_assert(::deep500::detail::Check<__VA_ARGS__>::CONDITION, "deep500: " D500_TEXT_##CONDITION);
#define D500_CHECK_OPERATOR(...)                     \
    D500_SAYS_(has_forward, __VA_ARGS__)             \
    D500_SAYS_(is_static, __VA_ARGS__)               \
    D500_SAYS_(returns_void, __VA_ARGS__)            \
    D500_SAYS_(has_few_tensors, __VA_ARGS__)         \
    D500_SAYS_(has_only_views, __VA_ARGS__)          \
    D500_SAYS_(has_only_dtypes, __VA_ARGS__)         \
    D500_SAYS_(has_outputs, __VA_ARGS__)             \
    D500_SAYS_(is_in_order, __VA_ARGS__)             \
    D500_SAYS_(backward_is_static, __VA_ARGS__)      \
    D500_SAYS_(backward_has_only_views, __VA_ARGS__) \
    D500_SAYS_(backward_is_in_order, __VA_ARGS__)    \
    D500_SAYS_(backward_counts_fit, __VA_ARGS__)     \
    D500_SAYS_(backward_dtypes_fit, __VA_ARGS__)     \
    D500_SAYS_(backward_optionals_fit, __VA_ARGS__)  \
    D500_SAYS_(second_fits, __VA_ARGS__)             \
    D500_SAYS_(cuda_fits, __VA_ARGS__)

#define D500_TEXT_has_forward                                                                                          \
    "the operator has no forward that can be called. Write a public 'template <typename T> static void forward(...)' " \
    "together with 'static constexpr auto dtypes = deep500::dtypes<float, double>();', or a 'static void "             \
    "forward(...)' "                                                                                                   \
    "for fixed types"
#define D500_TEXT_is_static "forward must be a static function: an operator has no state between calls"
#define D500_TEXT_returns_void "forward, backward and second must return void; results go into views"
#define D500_TEXT_has_few_tensors "an operator has at most 32 inputs and outputs together"
#define D500_TEXT_has_only_views                                                                            \
    "a parameter of forward is nothing that it can get. Accepted are deep500::View<const T> for an input, " \
    "deep500::View<T> for an output, deep500::Optional of them, deep500::Attributes and, in forward_cuda, " \
    "deep500::Stream"
#define D500_TEXT_has_only_dtypes                                                                                    \
    "a view of forward has an element type that tensors do not have. Accepted are float, double, deep500::float16, " \
    "deep500::bfloat16, int8_t to int64_t, uint8_t to uint64_t, bool and std::complex of float and double"
#define D500_TEXT_has_outputs "forward has no output: a View<T> whose T is not const"
#define D500_TEXT_is_in_order                                                                                     \
    "the parameters of forward are out of order, or a const is missing or too many: inputs (View<const T>) come " \
    "first, "                                                                                                     \
    "then outputs (View<T>), then Attributes, then the Stream"
#define D500_TEXT_backward_is_static "backward and second must be static functions that return void"
#define D500_TEXT_backward_has_only_views                                                                         \
    "a parameter of backward is nothing that it can get. Accepted are deep500::View<const T>, deep500::View<T>, " \
    "deep500::Optional of them, deep500::Attributes and, in backward_cuda, deep500::Stream"
#define D500_TEXT_backward_is_in_order                                                                              \
    "the parameters of backward are out of order, or a const is missing or too many: what is read (View<const T>) " \
    "comes "                                                                                                        \
    "first, then the gradients by the inputs (View<T>), then Attributes, then the Stream"
#define D500_TEXT_backward_counts_fit                                                                                  \
    "backward has the wrong number of views. It takes a View<const T> for the gradient by each float output, one for " \
    "each input and one for each output, then a View<T> for the gradient by each float input"
#define D500_TEXT_backward_dtypes_fit                                                                                  \
    "a view of backward has another element type than the tensor of forward in its place (the order is: gradients by " \
    "the outputs, inputs, outputs, gradients by the inputs)"
#define D500_TEXT_backward_optionals_fit                                                           \
    "an input is Optional in forward and a View in backward: take it, and the gradient by it, as " \
    "deep500::Optional there, too"
#define D500_TEXT_second_fits                                                                                          \
    "second has the wrong parameters. It takes a View<const T> for the gradient by each output of backward, then all " \
    "that backward reads, then a View<T> for the gradient by each of these that is a float"
#define D500_TEXT_cuda_fits                                                                                    \
    "a function for CUDA (forward_cuda, backward_cuda, second_cuda) must be static and take the views of the " \
    "function "                                                                                                \
    "for the CPU, in the same order and with the same types"

#endif
