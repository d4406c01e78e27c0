// TensorFlow's side of the border in <deep500/abi.h>: two operations that call whatever native operator their
// attributes name. Nothing is generated or compiled for an operator; this file is compiled once for each version of
// TensorFlow.
//
//   Deep500Call      the forward
//   Deep500Gradient  the backward, or the backward of the backward; kept apart so that each has a gradient of its own
//
// The attributes are texts and numbers, no addresses: a graph that was saved runs in any process that has loaded this
// file.

#include "_custom_operator.h"

#include <deep500/abi.h>
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "xla/stream_executor/stream.h"

namespace deep500 {
namespace {

using tensorflow::DataType;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Longest message of an operator, in bytes, with the zero at its end.
constexpr size_t kErrorBytes = 2048;

// Returns the places of those that are there among all. An empty list stands for all of them.
std::vector<int32_t> places(const std::vector<bool>& are_there, size_t tensors, int32_t* count) {
    std::vector<int32_t> found;
    *count = static_cast<int32_t>(are_there.empty() ? tensors : are_there.size());
    for (int32_t i = 0; i < *count; ++i) {
        if (are_there.empty() || are_there[i]) found.push_back(i);
    }
    return found;
}

// --- the kernel ------------------------------------------------------------------------------------------------------

class NativeKernel : public tensorflow::OpKernel {
  public:
    explicit NativeKernel(OpKernelConstruction* context) : OpKernel(context) {
        is_gradient_ = context->def().op() == "Deep500Gradient";
        is_gpu_ = context->device_type() == tensorflow::DeviceType(tensorflow::DEVICE_GPU);
        OP_REQUIRES_OK(context, context->GetAttr("operator", &name_));
        OP_REQUIRES_OK(context, context->GetAttr("N", &shape_count_));
        std::string attributes;
        OP_REQUIRES_OK(context, context->GetAttr("attributes", &attributes));
        OP_REQUIRES_OK(context, attributes_.read(attributes));
        read_types(context);
        if (context->status().ok()) read_places(context);
        if (context->status().ok()) find_function(context);
    }

    void Compute(OpKernelContext* context) override {
        std::vector<Tensor*> results(output_types_.size());
        for (size_t i = 0; i < results.size(); ++i) {
            TensorShape shape;
            OP_REQUIRES_OK(context, output_shape(context, i, &shape));
            OP_REQUIRES_OK(context, context->allocate_output(i, shape, &results[i]));
        }
        if (function_ == nullptr) {
            OP_REQUIRES(context, !is_gpu_ && gradients_are_zero(context), missing());
            for (Tensor* result : results) {
                const absl::string_view bytes = result->tensor_data();  // of a tensor without elements, at no address
                if (!bytes.empty()) std::memset(const_cast<char*>(bytes.data()), 0, bytes.size());
            }
            return;
        }
        call(context, results);
    }

  private:
    void read_types(OpKernelConstruction* context) {
        std::vector<DataType> inputs;
        std::vector<DataType> outputs;
        OP_REQUIRES_OK(context, context->GetAttr("Tin", &inputs));
        OP_REQUIRES_OK(context, context->GetAttr("Tout", &outputs));
        for (auto [types, found] : {std::pair(&inputs, &input_types_), std::pair(&outputs, &output_types_)}) {
            for (const DataType type : *types) {
                d5_dtype dtype;
                OP_REQUIRES(context, dlpack_dtype(type, &dtype),
                            absl::InvalidArgumentError(absl::StrCat(
                                "Deep500 operator '", name_, "' was given ", tensorflow::DataTypeString(type),
                                "; accepted are tensors of floats, integers, complex numbers and booleans.")));
                found->push_back(dtype);
            }
        }
    }

    // Reads which of all inputs and outputs the node has: the others are absent.
    void read_places(OpKernelConstruction* context) {
        std::vector<bool> given;
        std::vector<bool> wanted;
        OP_REQUIRES_OK(context, context->GetAttr("given", &given));
        if (is_gradient_) {
            OP_REQUIRES_OK(context, context->GetAttr("wanted", &wanted));
            OP_REQUIRES_OK(context, context->GetAttr("gradients", &gradient_count_));
        }
        given_ = places(given, input_types_.size(), &input_count_);
        wanted_ = places(wanted, output_types_.size(), &output_count_);
        OP_REQUIRES(
            context,
            given_.size() == input_types_.size() && wanted_.size() == output_types_.size() && gradient_count_ >= 0,
            absl::InvalidArgumentError(absl::StrCat("Deep500 operator '", name_,
                                                    "': which inputs and outputs the node has contradicts its "
                                                    "tensors.")));
        OP_REQUIRES(context, shape_count_ == 0 || shape_count_ == static_cast<int32_t>(output_types_.size()),
                    absl::InvalidArgumentError(absl::StrCat("Deep500 operator '", name_, "' was given ", shape_count_,
                                                            " shapes for ", output_types_.size(), " outputs.")));
        for (size_t i = 0; shape_count_ == 0 && i < wanted_.size(); ++i) {
            const int32_t model = is_gradient_ ? gradient_count_ + wanted_[i] : 0;
            int32_t index = -1;
            for (size_t j = 0; j < given_.size(); ++j) index = given_[j] == model ? static_cast<int32_t>(j) : index;
            OP_REQUIRES(context, index >= 0,
                        absl::InvalidArgumentError(absl::StrCat("Deep500 operator '", name_,
                                                                "' was given no shape of "
                                                                "output ",
                                                                wanted_[i], " and no input that has it.")));
            models_.push_back(index);
        }
    }

    void find_function(OpKernelConstruction* context) {
        std::string path;
        OP_REQUIRES_OK(context, context->GetAttr("library", &path));
        which_ = "forward";
        bool is_missing = false;
        if (is_gradient_) {
            OP_REQUIRES_OK(context, context->GetAttr("function", &which_));
            OP_REQUIRES_OK(context, context->GetAttr("missing", &is_missing));
        }
        if (is_missing) return;
        void* handle = nullptr;
        OP_REQUIRES_OK(context, open_library(path, name_, &handle));
        const std::string symbol = absl::StrCat("d5_", name_, "_", which_);
        function_ = reinterpret_cast<d5_function>(dlsym(handle, symbol.c_str()));
        OP_REQUIRES(
            context, function_ != nullptr,
            absl::NotFoundError(absl::StrCat("Deep500 operator '", name_, "': ", path, " has no ", symbol, ".")));
    }

    // Says why there is no gradient. A gradient is linear in those that come in, so that of zeros is known: 0.
    absl::Status missing() const {
        const char* how = which_ == "backward" ? "" : which_ == "second" ? " twice" : " three times";
        return absl::UnimplementedError(
            absl::StrCat("Deep500 operator '", name_, "' cannot be differentiated", how, ": it has no ", which_, "."));
    }

    bool gradients_are_zero(OpKernelContext* context) const {
        for (size_t i = 0; i < given_.size(); ++i) {
            if (given_[i] < gradient_count_ && !is_zero(context->input(i))) return false;
        }
        return true;
    }

    absl::Status output_shape(OpKernelContext* context, size_t index, TensorShape* shape) const {
        if (shape_count_ == 0) {
            *shape = context->input(models_[index]).shape();
            return absl::OkStatus();
        }
        const Tensor& sizes = context->input(input_types_.size() + index);
        if (!tensorflow::TensorShapeUtils::IsVector(sizes.shape())) {
            return absl::InvalidArgumentError("A shape must be a vector.");
        }
        const auto values = sizes.vec<int64_t>();
        return tensorflow::TensorShapeUtils::MakeShape(values.data(), values.size(), shape);
    }

    void call(OpKernelContext* context, const std::vector<Tensor*>& results) const {
        void* stream = nullptr;
        int32_t device_id = 0;
        if (is_gpu_) {
            stream = context->op_device_context()->stream()->platform_specific_handle().stream;
            device_id = context->device()->tensorflow_accelerator_device_info()->gpu_id;
        }
        const int32_t device_type = is_gpu_ ? D5_CUDA : D5_CPU;
        const d5_tensor absent = {nullptr, device_type, device_id, -1, {0, 0, 1}, nullptr, nullptr, 0};
        absl::InlinedVector<d5_tensor, 6> inputs(input_count_, absent);
        absl::InlinedVector<d5_tensor, 4> outputs(output_count_, absent);
        size_t dimensions = 0;
        for (size_t i = 0; i < given_.size(); ++i) dimensions += context->input(i).dims();
        for (const Tensor* result : results) dimensions += result->dims();
        absl::InlinedVector<int64_t, 24> sizes(dimensions);
        int64_t* next = sizes.data();
        const auto view = [&](const Tensor& tensor, d5_dtype dtype, d5_tensor* place) {
            place->data = const_cast<char*>(tensor.tensor_data().data());
            place->ndim = tensor.dims();
            place->dtype = dtype;
            place->shape = next;
            for (int i = 0; i < tensor.dims(); ++i) *next++ = tensor.dim_size(i);
        };
        for (size_t i = 0; i < given_.size(); ++i) view(context->input(i), input_types_[i], &inputs[given_[i]]);
        for (size_t i = 0; i < results.size(); ++i) view(*results[i], output_types_[i], &outputs[wanted_[i]]);
        const auto& attributes = attributes_.views();
        char error[kErrorBytes];
        error[0] = '\0';
        const d5_call call = {DEEP500_ABI_VERSION,
                              device_type,
                              input_count_,
                              output_count_,
                              static_cast<int32_t>(attributes.size()),
                              0,
                              inputs.data(),
                              outputs.data(),
                              attributes.data(),
                              stream,
                              error,
                              kErrorBytes};
        const int32_t status = function_(&call);
        if (status != D5_OK) context->SetStatus(failure(status, error));
    }

    absl::Status failure(int32_t status, char* error) const {
        error[kErrorBytes - 1] = '\0';
        const std::string message = absl::StrCat("Deep500 operator '", name_, "' failed in its ", which_, ": ",
                                                 error[0] != '\0' ? error : "it gave no reason");
        if (status == D5_UNSUPPORTED_DTYPE || status == D5_WRONG_ARGUMENTS) return absl::InvalidArgumentError(message);
        return absl::UnknownError(message);
    }

    std::string name_;
    std::string which_;
    Attributes attributes_;
    bool is_gradient_ = false;
    bool is_gpu_ = false;
    int32_t shape_count_ = 0;  // 0: outputs have the shapes of the inputs models_
    int32_t input_count_ = 0;  // with those that are absent
    int32_t output_count_ = 0;
    int32_t gradient_count_ = 0;  // of the leading inputs that are gradients
    std::vector<d5_dtype> input_types_;
    std::vector<d5_dtype> output_types_;
    std::vector<int32_t> given_;   // place, among all inputs, of those that the node has
    std::vector<int32_t> wanted_;  // the same of the outputs
    std::vector<int32_t> models_;
    d5_function function_ = nullptr;  // null for a derivative that the operator does not have
};

// --- registration ----------------------------------------------------------------------------------------------------

// Gives every output the shape that is fed for it, or that of the input that it is like.
absl::Status infer_shapes(InferenceContext* context, bool is_gradient) {
    int32_t shape_count = 0;
    int32_t gradient_count = 0;
    int32_t count = 0;
    std::vector<DataType> inputs;
    std::vector<bool> given;
    std::vector<bool> wanted;
    TF_RETURN_IF_ERROR(context->GetAttr("N", &shape_count));
    TF_RETURN_IF_ERROR(context->GetAttr("Tin", &inputs));
    TF_RETURN_IF_ERROR(context->GetAttr("given", &given));
    if (is_gradient) {
        TF_RETURN_IF_ERROR(context->GetAttr("gradients", &gradient_count));
        TF_RETURN_IF_ERROR(context->GetAttr("wanted", &wanted));
    }
    const std::vector<int32_t> given_places = places(given, inputs.size(), &count);
    const std::vector<int32_t> wanted_places = places(wanted, context->num_outputs(), &count);
    for (int32_t i = 0; i < context->num_outputs(); ++i) {
        ShapeHandle shape = context->UnknownShape();
        if (shape_count == context->num_outputs()) {
            TF_RETURN_IF_ERROR(context->MakeShapeFromShapeTensor(static_cast<int>(inputs.size()) + i, &shape));
        } else if (i < static_cast<int32_t>(wanted_places.size())) {
            const int32_t model = is_gradient ? gradient_count + wanted_places[i] : 0;
            for (size_t j = 0; j < given_places.size() && j < inputs.size(); ++j) {
                if (given_places[j] == model) shape = context->input(static_cast<int>(j));
            }
        }
        context->set_output(i, shape);
    }
    return absl::OkStatus();
}

REGISTER_OP("Deep500Call")
    .Input("inputs: Tin")
    .Input("shapes: N * int64")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("N: int >= 0")
    .Attr("Tout: list(type) >= 1")
    .Attr("library: string")
    .Attr("operator: string")
    .Attr("attributes: string = ''")
    .Attr("given: list(bool) = []")
    .SetShapeFn([](InferenceContext* context) { return infer_shapes(context, false); })
    .Doc("Runs the forward of a native operator of Deep500.");

REGISTER_OP("Deep500Gradient")
    .Input("inputs: Tin")
    .Input("shapes: N * int64")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("N: int >= 0")
    .Attr("Tout: list(type) >= 1")
    .Attr("library: string")
    .Attr("operator: string")
    .Attr("attributes: string = ''")
    .Attr("given: list(bool) = []")
    .Attr("function: string")
    .Attr("missing: bool = false")
    .Attr("wanted: list(bool)")
    .Attr("gradients: int")
    .SetShapeFn([](InferenceContext* context) { return infer_shapes(context, true); })
    .Doc("Runs the backward of a native operator of Deep500, or the backward of its backward.");

REGISTER_KERNEL_BUILDER(Name("Deep500Call").Device(tensorflow::DEVICE_CPU), NativeKernel);
REGISTER_KERNEL_BUILDER(Name("Deep500Gradient").Device(tensorflow::DEVICE_CPU), NativeKernel);
// These need no header of CUDA, and are never asked for where there is no GPU.
REGISTER_KERNEL_BUILDER(Name("Deep500Call").Device(tensorflow::DEVICE_GPU).HostMemory("shapes"), NativeKernel);
REGISTER_KERNEL_BUILDER(Name("Deep500Gradient").Device(tensorflow::DEVICE_GPU).HostMemory("shapes"), NativeKernel);

}  // namespace
}  // namespace deep500

// Names the library of an operator, for graphs that name one which is not there.
extern "C" __attribute__((visibility("default"))) void deep500_provide_library(const char* name, const char* path) {
    absl::MutexLock lock(&deep500::provided_mutex);
    deep500::provided_libraries()[name] = path;
}
