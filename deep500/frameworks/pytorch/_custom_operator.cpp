// PyTorch's side of the border in <deep500/abi.h>: one set of kernels that serves every native operator. Nothing is
// generated or compiled for an operator; this file is compiled once for each version of PyTorch.
//
// Python defines the schemas and what tracing needs (custom_operator.py); here the kernels are registered under them:
//
//   NAME(Tensor x0, ..) -> (Tensor, ..)            the forward; of an operator with any number of inputs, NAME(Tensor[]
//   x) _NAME_backward(Tensor[] given, int[] places, SymInt[] sizes, int[] ranks, int[] dtypes, bool[] wanted) ->
//   Tensor[] _NAME_second(Tensor[] given, int[] places, bool[] wanted) -> Tensor[]
//
// What is absent is not in `given`; `places` says which the others are. Only what is wanted is returned.

#include <torch/library.h>

#include "_native_autograd.h"

namespace deep500 {
namespace {

namespace py = pybind11;
using c10::DispatchKeySet;
using c10::OperatorHandle;

// Takes the arguments of a call from the stack, the tensors of lists one by one; undefined where absent.
Tensors take_tensors(const Stack& stack, size_t count) {
    Tensors tensors;
    for (size_t i = stack.size() - count; i < stack.size(); ++i) {
        const c10::IValue& value = stack[i];
        if (value.isTensor()) {
            tensors.push_back(value.toTensor());
        } else if (value.isTensorList()) {
            const auto list = value.toTensorVector();
            tensors.append(list.begin(), list.end());
        } else {
            tensors.emplace_back();
        }
    }
    return tensors;
}

std::vector<bool> bools(const c10::IValue& value) {
    const auto list = value.toBoolList();
    return {list.begin(), list.end()};
}

// Keeps the results that were wanted.
std::vector<at::Tensor> wanted_ones(std::vector<at::Tensor> results, const std::vector<bool>& wanted) {
    std::vector<at::Tensor> kept;
    for (size_t i = 0; i < results.size(); ++i) {
        if (wanted[i]) kept.push_back(std::move(results[i]));
    }
    return kept;
}

// A kernel; `arguments` is the number of the operator's arguments on the stack.
struct Kernel : c10::OperatorKernel {
    explicit Kernel(const NativeOperator* operator_) : op(operator_) {}
    const NativeOperator* op;

    size_t forward_arguments() const { return op->input_count < 0 ? 1 : static_cast<size_t>(op->input_count); }

    // Calls what lies below autograd. The results replace the arguments.
    static void call_below(const OperatorHandle& handle, DispatchKeySet keys, Stack* stack) {
        at::AutoDispatchBelowADInplaceOrView guard;
        handle.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    }
};

// --- the forward -----------------------------------------------------------------------------------------------------

struct Forward : Kernel {
    using Kernel::Kernel;

    void operator()(const OperatorHandle&, DispatchKeySet, Stack* stack) {
        const Tensors inputs = take_tensors(*stack, forward_arguments());
        replace(stack, op->run_forward(inputs));
    }
    void replace(Stack* stack, Tensors&& outputs) const {
        torch::jit::drop(*stack, forward_arguments());
        for (at::Tensor& output : outputs) stack->emplace_back(std::move(output));
    }
};

struct ForwardAutograd : Forward {
    using Forward::Forward;

    void operator()(const OperatorHandle& handle, DispatchKeySet keys, Stack* stack) {
        const Tensors inputs = take_tensors(*stack, forward_arguments());
        refuse_forward_mode(*op, inputs);
        const bool records = is_recorded(inputs);
        if (is_plain(keys)) {
            replace(stack, op->run_forward(inputs));
        } else {
            call_below(handle, keys, stack);
        }
        if (!records) return;
        const Tensors outputs = take_tensors(*stack, static_cast<size_t>(op->output_count));
        if (op->backward == nullptr) {
            set_origin(make_refusal(op, inputs, kNotDifferentiable), outputs);
            return;
        }
        const auto node = make_node<BackwardNode>(op, inputs);
        node->keep_inputs(inputs);
        set_origin(node, outputs);
        node->keep_outputs(outputs);
    }
};

// --- its backward ----------------------------------------------------------------------------------------------------

constexpr size_t kBackwardArguments = 6;

struct Backward : Kernel {
    using Kernel::Kernel;

    void operator()(const OperatorHandle&, DispatchKeySet, Stack* stack) {
        const auto arguments = torch::jit::pop(*stack, kBackwardArguments);
        const auto wanted = bools(arguments[5]);
        Outlines outlines{arguments[2].toSymIntVector(), arguments[3].toIntVector(), arguments[4].toIntVector()};
        const Tensors given = slots(arguments, wanted.size());
        stack->emplace_back(wanted_ones(op->run_backward(given, wanted, outlines), wanted));
    }
    Tensors slots(const Stack& arguments, size_t inputs) const {
        const size_t count = inputs + 2 * static_cast<size_t>(op->output_count);
        return Given::spread(arguments[0].toTensorVector(), arguments[1].toIntVector(), count);
    }
};

struct BackwardAutograd : Backward {
    using Backward::Backward;

    void operator()(const OperatorHandle& handle, DispatchKeySet keys, Stack* stack) {
        const Stack arguments(stack->end() - kBackwardArguments, stack->end());
        const auto wanted = bools(arguments[5]);
        const Tensors given = slots(arguments, wanted.size());
        refuse_forward_mode(*op, given);
        const bool records = is_recorded(given);
        call_below(handle, keys, stack);
        if (!records) return;
        const auto results = stack->back().toTensorVector();
        if (op->second == nullptr) {
            set_origin(make_refusal(op, given, kNotTwice), results);
            return;
        }
        const auto node = make_node<SecondNode>(op, given);
        node->keep(given, wanted);
        set_origin(node, results);
    }
};

// --- the backward of the backward ------------------------------------------------------------------------------------

constexpr size_t kSecondArguments = 3;

struct Second : Kernel {
    using Kernel::Kernel;

    void operator()(const OperatorHandle&, DispatchKeySet, Stack* stack) {
        const auto arguments = torch::jit::pop(*stack, kSecondArguments);
        const auto wanted = bools(arguments[2]);
        stack->emplace_back(wanted_ones(op->run_second(slots(arguments, wanted.size()), wanted), wanted));
    }
    Tensors slots(const Stack& arguments, size_t wanted) const {
        const size_t outputs = 2 * static_cast<size_t>(op->output_count);
        TORCH_CHECK_VALUE(wanted >= outputs, "what is wanted has to be said for every tensor");
        return Given::spread(arguments[0].toTensorVector(), arguments[1].toIntVector(), 2 * wanted - outputs);
    }
};

struct SecondAutograd : Second {
    using Second::Second;

    void operator()(const OperatorHandle& handle, DispatchKeySet keys, Stack* stack) {
        const Tensors given = take_tensors({*(stack->end() - kSecondArguments)}, 1);
        refuse_forward_mode(*op, given);
        const bool records = is_recorded(given);
        call_below(handle, keys, stack);
        if (!records) return;
        set_origin(make_refusal(op, given, kNotThrice), stack->back().toTensorVector());
    }
};

// --- registration ----------------------------------------------------------------------------------------------------

template <typename OnDevice, typename OnAutograd>
void add_kernels(torch::Library& library, const std::string& name, const NativeOperator* op) {
    const auto add = [&](c10::DispatchKey key, auto kernel) {
        library.impl(name.c_str(), torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
    };
    add(c10::DispatchKey::CPU, std::make_unique<OnDevice>(op));
    add(c10::DispatchKey::CUDA, std::make_unique<OnDevice>(op));
    add(c10::DispatchKey::Autograd, std::make_unique<OnAutograd>(op));
}

std::unique_ptr<OperatorHandle> find(const std::string& name) {
    return std::make_unique<OperatorHandle>(
        c10::Dispatcher::singleton().findSchemaOrThrow(("deep500::" + name).c_str(), ""));
}

// Registers the kernels of an operator, whose schemas are defined. It stays until the process ends, as graphs may hold
// it.
void register_operator(const std::string& entry, const py::dict& about) {
    static torch::Library* library =
        new torch::Library(torch::Library::IMPL, "deep500", std::nullopt, __FILE__, __LINE__);
    auto* op = new NativeOperator();
    op->name = about["name"].cast<std::string>();
    op->input_count = about["input_count"].cast<int64_t>();
    op->output_count = about["output_count"].cast<int64_t>();
    op->forward = reinterpret_cast<d5_function>(about["forward"].cast<uintptr_t>());
    op->backward = reinterpret_cast<d5_function>(about["backward"].cast<uintptr_t>());
    op->second = reinterpret_cast<d5_function>(about["second"].cast<uintptr_t>());
    op->reads_inputs = about["reads_inputs"].cast<bool>();
    op->reads_outputs = about["reads_outputs"].cast<bool>();
    op->on_cpu = about["on_cpu"].cast<bool>();
    op->on_cuda = about["on_cuda"].cast<bool>();
    for (const py::handle attribute : about["attributes"]) {
        const auto values = attribute.cast<py::tuple>();
        op->attributes.add(values[0].cast<std::string>(), values[1].cast<int32_t>(),
                           values[2].cast<std::vector<int64_t>>(), values[3].cast<std::vector<double>>(),
                           values[4].cast<std::string>());
    }
    if (!about["infer"].is_none()) op->infer = about["infer"].cast<py::object>().release().ptr();
    add_kernels<Forward, ForwardAutograd>(*library, entry, op);
    if (op->backward != nullptr) {
        op->backward_handle = find("_" + entry + "_backward");
        add_kernels<Backward, BackwardAutograd>(*library, "_" + entry + "_backward", op);
    }
    if (op->second != nullptr) {
        op->second_handle = find("_" + entry + "_second");
        add_kernels<Second, SecondAutograd>(*library, "_" + entry + "_second", op);
    }
}

}  // namespace

PYBIND11_MODULE(_deep500_custom_operator, module) {
    module.def("register_operator", &register_operator);
    module.def("set_error", [](const py::object& type) { OperatorError::type() = py::object(type).release().ptr(); });
    module.def("dtype_number", [](at::ScalarType dtype) { return static_cast<int64_t>(dtype); });
}

}  // namespace deep500
