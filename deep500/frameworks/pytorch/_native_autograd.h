// Derivatives of native operators: what PyTorch's autograd records, and the operators that it calls.
//
// An operator NAME has up to three entries in the dispatcher: the forward, its backward, and the backward of that. Each
// has a kernel for tensors on a device and one for autograd, so that whoever traces (torch.compile, torch.export) sees
// plain operators, and a derivative that does not exist is an error and never a wrong number.
#ifndef DEEP500_FRAMEWORKS_PYTORCH_NATIVE_AUTOGRAD_H
#define DEEP500_FRAMEWORKS_PYTORCH_NATIVE_AUTOGRAD_H

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>

#include "_native_operator.h"

namespace deep500 {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::jit::Stack;

// Whether only a device's own kernel is left to be called for tensors with these keys: no tracing, no wrapper, no mode.
inline bool is_plain(c10::DispatchKeySet keys) {
    const c10::DispatchKey key = (keys & c10::after_ADInplaceOrView_keyset).highestPriorityTypeId();
    return key == c10::DispatchKey::CPU || key == c10::DispatchKey::CUDA;
}
inline bool is_plain(at::TensorList tensors) {
    static const c10::DispatchKeySet allowed =
        c10::DispatchKeySet{c10::DispatchKey::CPU, c10::DispatchKey::CUDA, c10::DispatchKey::BackendSelect,
                            c10::DispatchKey::ADInplaceOrView} |
        c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset;
    const auto local = c10::impl::tls_local_dispatch_key_set();
    c10::DispatchKeySet keys = local.included_;
    for (const at::Tensor& tensor : tensors) {
        if (tensor.defined()) keys = keys | tensor.key_set();
    }
    return allowed.has_all(keys - local.excluded_);
}

// An operator records a node where this holds.
inline bool is_recorded(at::TensorList tensors) {
    if (!at::GradMode::is_enabled()) return false;
    for (const at::Tensor& tensor : tensors) {
        if (tensor.defined() && tensor.requires_grad()) return true;
    }
    return false;
}

inline bool is_differentiable(at::ScalarType dtype) {
    return torch::autograd::isDifferentiableType(dtype);
}

inline void refuse_forward_mode(const NativeOperator& op, at::TensorList tensors) {
    for (const at::Tensor& tensor : tensors) {
        if (tensor.defined() && tensor._fw_grad(0).defined()) {
            fail(op.name, " has no forward-mode derivative. Use reverse mode (backward, torch.autograd.grad).");
        }
    }
}

// The tensors that are there, and their places among all: how a gradient's arguments go through the dispatcher.
struct Given {
    std::vector<at::Tensor> tensors;
    std::vector<int64_t> places;

    explicit Given(at::TensorList all) {
        for (size_t i = 0; i < all.size(); ++i) {
            if (!all[i].defined()) continue;
            tensors.push_back(all[i]);
            places.push_back(static_cast<int64_t>(i));
        }
    }
    static Tensors spread(const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& places, size_t count) {
        TORCH_CHECK_VALUE(tensors.size() == places.size(), "every tensor needs a place");
        Tensors all(count);
        for (size_t i = 0; i < places.size(); ++i) {
            TORCH_CHECK_VALUE(0 <= places[i] && places[i] < static_cast<int64_t>(count), "there is no place ",
                              places[i]);
            all[static_cast<size_t>(places[i])] = tensors[i];
        }
        return all;
    }
};

struct OperatorNode : Node {
    const NativeOperator* op = nullptr;

    std::string name() const override { return "Deep500[" + op->name + "]" + suffix(); }
    virtual const char* suffix() const { return ""; }

    void connect(at::TensorList variables) {
        for (const at::Tensor& variable : variables) {
            add_next_edge(variable.defined() ? torch::autograd::impl::gradient_edge(variable)
                                             : torch::autograd::Edge());
        }
    }
    bool is_wanted(size_t edge) const { return task_should_compute_output(edge); }

  protected:
    static void save(std::vector<SavedVariable>& kept, at::TensorList tensors, bool are_outputs) {
        kept.reserve(tensors.size());
        for (const at::Tensor& tensor : tensors) {
            if (tensor.defined()) {
                kept.emplace_back(tensor, are_outputs);
            } else {
                kept.emplace_back();
            }
        }
    }
    void unpack(const std::vector<SavedVariable>& kept, bool are_outputs, Tensors& tensors) {
        for (const SavedVariable& saved : kept) {
            tensors.push_back(are_outputs ? saved.unpack(getptr()) : saved.unpack());
        }
    }
    static void release(std::vector<SavedVariable>& kept) {
        for (SavedVariable& saved : kept) saved.reset_data();
    }
};

// Returns a node of the graph that leads to these inputs.
template <typename T>
auto make_node(const NativeOperator* op, at::TensorList inputs) {
    // Which pointers count the references to nodes depends on the version of PyTorch.
    auto node = [] {
        if constexpr (std::is_same_v<decltype(torch::autograd::Edge::function), std::shared_ptr<Node>>) {
            return std::shared_ptr<T>(new T(), [](T* last) { deleteNode(last); });
        } else {
            return c10::make_intrusive<T>();
        }
    }();
    node->op = op;
    node->connect(inputs);
    return node;
}

// Makes the node the origin of those outputs that can have a gradient.
template <typename Pointer>
void set_origin(const Pointer& node, at::TensorList outputs) {
    for (const at::Tensor& output : outputs) {
        if (is_differentiable(output.scalar_type())) {
            const auto number = node->add_input_metadata(output);
            torch::autograd::impl::set_gradient_edge(output, {node, number});
        } else {
            node->add_input_metadata(Node::undefined_input());
        }
    }
}

// A derivative that does not exist: an error once somebody asks for it.
struct Refusal : OperatorNode {
    const char* reason = nullptr;

    variable_list apply(variable_list&&) override { fail(op->name, reason); }
};

inline auto make_refusal(const NativeOperator* op, at::TensorList inputs, const char* reason) {
    const auto node = make_node<Refusal>(op, inputs);
    node->reason = reason;
    return node;
}

constexpr const char* kNotDifferentiable =
    " cannot be differentiated: its library has no backward. Detach its inputs, or write one.";
constexpr const char* kNotTwice =
    " cannot be differentiated twice: its library has no second. Write one, or do without create_graph=True.";
constexpr const char* kNotThrice = " cannot be differentiated three times.";

// Second derivatives: the backward of the backward. Its variables are all that the backward was given.
struct SecondNode : OperatorNode {
    std::vector<bool> wanted;  // the gradients that the backward made
    std::vector<SavedVariable> given;

    const char* suffix() const override { return "Second"; }
    void keep(at::TensorList tensors, std::vector<bool> results) {
        save(given, tensors, false);
        wanted = std::move(results);
    }
    void release_variables() override {
        const std::lock_guard<std::mutex> lock(mutex_);
        release(given);
    }

    variable_list apply(variable_list&& gradients) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        Tensors slots(wanted.size());
        for (size_t i = 0, next = 0; i < wanted.size(); ++i) {
            if (!wanted[i]) continue;
            const at::Tensor& gradient = gradients[next];
            // A library can fill in what is missing only from an input, which may not have been kept.
            slots[i] = gradient.defined() || op->reads_inputs ? gradient : input_metadata(next).zeros_like();
            ++next;
        }
        unpack(given, false, slots);
        c10::List<bool> asked;
        for (size_t i = 0; i < given.size(); ++i) {
            const at::Tensor& tensor = slots[wanted.size() + i];
            asked.push_back(tensor.defined() && is_differentiable(tensor.scalar_type()) && is_wanted(i));
        }
        const Given arguments(slots);
        Stack stack{arguments.tensors, arguments.places, asked};
        op->second_handle->callBoxed(&stack);
        return results(stack.back().toTensorVector(), asked);
    }

    // Puts the results that were asked for into their places.
    static variable_list results(const std::vector<at::Tensor>& found, const c10::List<bool>& asked) {
        variable_list all(asked.size());
        for (size_t i = 0, next = 0; i < all.size(); ++i) {
            if (asked[i]) all[i] = found.at(next++);
        }
        return all;
    }
};

// First derivatives. Its variables are the forward's inputs.
struct BackwardNode : OperatorNode {
    c10::SmallVector<bool, 4> has_gradient;  // of the outputs
    std::vector<SavedVariable> inputs;
    std::vector<SavedVariable> outputs;
    Outlines outlines;  // of the inputs where they are not kept

    const char* suffix() const override { return "Backward"; }
    void keep_inputs(at::TensorList tensors) {
        if (op->reads_inputs) return save(inputs, tensors, false);
        for (const at::Tensor& tensor : tensors) outlines.add(tensor);
    }
    void keep_outputs(at::TensorList tensors) {
        for (const at::Tensor& tensor : tensors) has_gradient.push_back(is_differentiable(tensor.scalar_type()));
        if (op->reads_outputs) save(outputs, tensors, true);
    }
    void release_variables() override {
        const std::lock_guard<std::mutex> lock(mutex_);
        release(inputs);
        release(outputs);
    }

    variable_list apply(variable_list&& gradients) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        const size_t input_count = num_outputs();  // of the node: a gradient for each of the operator's inputs
        bool is_known = false;
        for (const at::Tensor& gradient : gradients) is_known = is_known || gradient.defined();
        if (!is_known) return variable_list(input_count);
        Tensors slots;
        for (size_t i = 0; i < gradients.size(); ++i) {
            // A library fills in zeros where it is given the output; its second derivative needs the gradient itself.
            const bool is_missing = !gradients[i].defined() && has_gradient[i];
            const bool is_filled = is_missing && (!op->reads_outputs || at::GradMode::is_enabled());
            slots.push_back(is_filled ? input_metadata(i).zeros_like() : std::move(gradients[i]));
        }
        if (op->reads_inputs)
            unpack(inputs, false, slots);
        else
            slots.resize(slots.size() + input_count);
        if (op->reads_outputs)
            unpack(outputs, true, slots);
        else
            slots.resize(slots.size() + has_gradient.size());
        return differentiate(slots, input_count);
    }

  private:
    variable_list differentiate(const Tensors& slots, size_t input_count) {
        // Where inputs are not kept, a library cannot make up the gradients that nobody asks for: it gets all of them.
        std::vector<bool> wanted(input_count);
        for (size_t i = 0; i < input_count; ++i) {
            wanted[i] = op->reads_inputs ? is_wanted(i)
                                         : outlines.dtypes[i] >= 0 &&
                                               is_differentiable(static_cast<at::ScalarType>(outlines.dtypes[i]));
        }
        variable_list results;
        if (!at::GradMode::is_enabled() && is_plain(slots)) {
            results = op->run_backward(slots, wanted, outlines);
        } else {
            const Given arguments(slots);
            Stack stack{arguments.tensors, arguments.places, c10::SymIntArrayRef(outlines.sizes),
                        outlines.ranks,    outlines.dtypes,  list_of(wanted)};
            op->backward_handle->callBoxed(&stack);
            results = SecondNode::results(stack.back().toTensorVector(), list_of(wanted));
        }
        for (size_t i = 0; i < input_count && !op->reads_inputs; ++i) {
            if (!is_wanted(i)) results[i] = at::Tensor();
        }
        return results;
    }
    static c10::List<bool> list_of(const std::vector<bool>& values) {
        c10::List<bool> list;
        for (const bool value : values) list.push_back(value);
        return list;
    }
};

}  // namespace deep500

#endif
