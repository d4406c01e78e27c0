// All of Deep500's C++ side, and an operator as a class whose objects are made for one set of shapes: the form of the
// published Deep500. For example
//
//   #include <cmath>
//   #include <deep500/deep500.h>
//
//   template <typename T>
//   class cubeop : public deep500::CustomOperator {
//       int m_len;
//     public:
//       cubeop(int len) : m_len(len) {}
//       void forward(const T* input, T* output) { ... }
//       void backward(const T* nextop_grad, const T* fwd_input, const T* fwd_output, T* input_grad) { ... }
//   };
//   D500_EXPORTED void* create_new_op(deep500::tensor_t* inputs, int num_inputs, deep500::tensor_t* outputs,
//                                     int num_outputs) { return new cubeop<DTYPE>(...); }
//   D500_REGISTER_OP(cubeop<DTYPE>)
//
// The functions take a pointer to the elements of every tensor: const for what is read, and in the order of operator.h,
// except that there is a gradient for every tensor, whatever its type. forward_cuda and backward_cuda get pointers to
// the GPU's memory, and may have a deep500::Stream as their last parameter; without it they are run as if alone on the
// device. Shapes and dtypes are fixed when an object is made: one is made for each set of them, kept, and called by one
// thread at a time. Where there is no create_new_op, an object is made by the class' constructor from the same
// four arguments, from the number of elements of the first input, or from nothing.
#ifndef DEEP500_DEEP500_H
#define DEEP500_DEEP500_H

#include <deep500/operator.h>

namespace deep500 {

enum tensortype_t {
    TT_VOID = 0,
    TT_INT8,
    TT_INT16,
    TT_INT32,
    TT_INT64,
    TT_UINT8,
    TT_UINT16,
    TT_UINT32,
    TT_UINT64,
    TT_HALF,
    TT_FLOAT,
    TT_DOUBLE,
    TT_BITSET,
    TT_BFLOAT16,
    TT_COMPLEX64,
    TT_COMPLEX128,
    TT_LEN,
};

enum tensororder_t { TORD_IRRELEVANT = 0, TORD_NCHW, TORD_NHWC, TORD_LEN };

// Dtype and shape of a tensor.
struct tensor_t {
    tensortype_t type;
    tensororder_t order;  // always TORD_IRRELEVANT
    uint8_t dims;
    uint32_t* sizes;  // lives as long as the operator's object
};

// What an operator's class derives from; see the example above for the functions that it adds.
class CustomOperator {
  public:
    CustomOperator() = default;
    virtual ~CustomOperator() = default;

    // Whether forward_cuda and backward_cuda, which the class must have, may be called.
    virtual bool supports_cuda() { return true; }

    // Whatever the operator wants to tell, such as the bytes that it has moved so far.
    virtual int64_t report(void* data) {
        (void)data;
        return 0;
    }
};

}  // namespace deep500

#include <deep500/detail/class_call.h>

#ifndef D500_OPERATOR_NAME  // which Deep500 gives when it compiles
#define D500_OPERATOR_NAME custom
#endif

// Defines the functions of the border for a class.
#define D500_REGISTER_OP(...) D500_REGISTER_CLASS_(D500_OPERATOR_NAME, __VA_ARGS__)
#define D500_REGISTER_CLASS_(NAME, ...) D500_REGISTER_NAMED_CLASS_(NAME, __VA_ARGS__)
#define D500_REGISTER_NAMED_CLASS_(NAME, ...)                                                                         \
    D500_CHECK_CLASS_(__VA_ARGS__)                                                                                    \
    static void* d5_##NAME##_create(deep500::tensor_t* inputs, int input_count, deep500::tensor_t* outputs,           \
                                    int output_count) {                                                               \
        return ::deep500::detail::object_from<__VA_ARGS__>(create_new_op(inputs, input_count, outputs, output_count), \
                                                           inputs, input_count, outputs, output_count);               \
    }                                                                                                                 \
    D500_EXPORTED const char* d5_##NAME##_describe(void) {                                                            \
        static const std::string text = ::deep500::detail::describe_class<__VA_ARGS__>(#NAME);                        \
        return text.c_str();                                                                                          \
    }                                                                                                                 \
    D500_EXPORTED int32_t d5_##NAME##_forward(const d5_call* call) {                                                  \
        return ::deep500::detail::run_class<__VA_ARGS__, ::deep500::detail::Forward>(call, d5_##NAME##_create);       \
    }                                                                                                                 \
    D500_EXPORTED int32_t d5_##NAME##_backward(const d5_call* call) {                                                 \
        return ::deep500::detail::run_class<__VA_ARGS__, ::deep500::detail::Backward>(call, d5_##NAME##_create);      \
    }                                                                                                                 \
    D500_EXPORTED int64_t d5_##NAME##_report(void* data) {                                                            \
        return ::deep500::detail::report_class<__VA_ARGS__>(data);                                                    \
    }

#endif
