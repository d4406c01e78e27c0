#include <deep500/cuda.h>

#include "softmax_crossentropy.h"

namespace native_ops {

struct Larger {
    template <typename N>
    __device__ N operator()(N a, N b) const {
        return b > a || b != b ? b : a;
    }
};

// Who computes a position: all threads of a block together, where its classes are neighbours; else a single one, whose
// neighbours compute neighbouring positions.
struct ByBlock {
    static constexpr bool is_block = true;
    template <typename N>
    __device__ static N sum(N value) {
        return deep500::block_sum(value);
    }
    template <typename N>
    __device__ static N largest(N value) {
        return deep500::over_block(value, Larger());
    }
    template <typename N>
    __device__ static N smallest(N value) {
        return -deep500::over_block(-value, Larger());
    }
};
struct ByThread {
    static constexpr bool is_block = false;
    template <typename N>
    __device__ static N sum(N value) {
        return value;
    }
    template <typename N>
    __device__ static N largest(N value) {
        return value;
    }
    template <typename N>
    __device__ static N smallest(N value) {
        return value;
    }
};

// The positions that a thread takes part in, and the classes of them that it looks at.
template <typename By>
struct Share {
    __device__ static int64_t position() { return By::is_block ? blockIdx.x : deep500::first_item(); }
    __device__ static int64_t position_step() { return By::is_block ? gridDim.x : deep500::item_step(); }
    __device__ static int64_t first_class() { return By::is_block ? threadIdx.x : 0; }
    __device__ static int64_t class_step() { return By::is_block ? blockDim.x : 1; }
};

template <typename C>
struct Normaliser {
    C largest, log_sum;
};

// As Columns::normalise in the code for processors.
template <typename By, typename T>
__device__ Normaliser<deep500::compute_type<T>> normaliser(const EntropyShapes& shapes, const T* scores) {
    using C = deep500::compute_type<T>;
    using Part = Share<By>;
    C largest = -INFINITY;
    for (int64_t c = Part::first_class(); c < shapes.classes; c += Part::class_step()) {
        largest = Larger()(largest, static_cast<C>(scores[c * shapes.pixels]));
    }
    largest = By::largest(largest);
    int64_t place = shapes.classes;
    for (int64_t c = Part::first_class(); c < shapes.classes && place == shapes.classes; c += Part::class_step()) {
        if (static_cast<C>(scores[c * shapes.pixels]) == largest) place = c;
    }
    place = By::smallest(place);
    C rest = 0;
    for (int64_t c = Part::first_class(); c < shapes.classes; c += Part::class_step()) {
        if (c != place) rest += exp(static_cast<C>(scores[c * shapes.pixels]) - largest);
    }
    return {largest, log1p(By::sum(rest)) + (largest - largest)};
}

template <typename T>
__device__ double weight_at(const T* weights, int64_t label) {
    return weights != nullptr ? static_cast<double>(static_cast<deep500::compute_type<T>>(weights[label])) : 1.0;
}

// Writes log_prob, and the loss of each position. A label that is none gives NaN, for nobody waits to be told.
template <typename By, typename T>
__global__ void log_prob_kernel(EntropyShapes shapes, const T* scores, const int64_t* labels, const T* weights,
                                T* log_prob, double* losses) {
    using C = deep500::compute_type<T>;
    using Part = Share<By>;
    for (int64_t i = Part::position(); i < shapes.positions(); i += Part::position_step()) {
        const T* from = scores + shapes.first(i);
        T* to = log_prob + shapes.first(i);
        const Normaliser<C> norm = normaliser<By>(shapes, from);
        for (int64_t c = Part::first_class(); c < shapes.classes; c += Part::class_step()) {
            to[c * shapes.pixels] = T((static_cast<C>(from[c * shapes.pixels]) - norm.largest) - norm.log_sum);
        }
        if (Part::first_class() != 0) continue;
        const int64_t label = labels[i];
        double loss = 0;
        if (shapes.is_counted(label) && !shapes.is_class(label)) {
            loss = NAN;
        } else if (shapes.is_counted(label)) {
            const C score = static_cast<C>(from[label * shapes.pixels]);
            loss = -static_cast<double>((score - norm.largest) - norm.log_sum) * weight_at(weights, label);
        }
        losses[i] = loss;
    }
}

// Adds the weights of all labels that count; 1 unless the loss is a mean. Run by one block.
template <typename T>
__global__ void divisor_kernel(EntropyShapes shapes, const int64_t* labels, const T* weights, double* whole) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < shapes.positions() && shapes.reduction == Reduction::kMean; i += blockDim.x) {
        if (!shapes.is_counted(labels[i])) continue;
        sum += shapes.is_class(labels[i]) ? weight_at(weights, labels[i]) : NAN;
    }
    sum = deep500::block_sum(sum);
    if (threadIdx.x == 0) *whole = shapes.reduction == Reduction::kMean ? sum : 1.0;
}

// Writes the loss, by one block where there is one.
template <typename T>
__global__ void loss_kernel(EntropyShapes shapes, const double* losses, const double* whole, T* loss) {
    if (shapes.reduction == Reduction::kNone) {
        for (int64_t i = deep500::first_item(); i < shapes.positions(); i += deep500::item_step())
            loss[i] = T(losses[i]);
        return;
    }
    double sum = 0;
    for (int64_t i = threadIdx.x; i < shapes.positions(); i += blockDim.x) sum += losses[i];
    sum = deep500::block_sum(sum);
    if (threadIdx.x == 0) *loss = T(sum / *whole);
}

// What the kernels of the backward read.
template <typename T>
struct EntropyGradients {
    const T *by_loss, *by_log_prob;  // may be null
    const T* scores;
    const int64_t* labels;
    const T* weights;  // may be null
    const double* whole;

    __device__ double by_position(const EntropyShapes& shapes, int64_t position) const {
        if (by_loss == nullptr) return 0;
        const int64_t place = shapes.reduction == Reduction::kNone ? position : 0;
        return static_cast<double>(static_cast<deep500::compute_type<T>>(by_loss[place])) / *whole;
    }
};

// The gradient by the scores, as in the code for processors; and the logarithm of each label's probability.
template <typename By, typename T>
__global__ void by_scores_kernel(EntropyShapes shapes, EntropyGradients<T> given, T* by_scores, double* picked) {
    using C = deep500::compute_type<T>;
    using Part = Share<By>;
    for (int64_t i = Part::position(); i < shapes.positions(); i += Part::position_step()) {
        const T* from = given.scores + shapes.first(i);
        const T* h = given.by_log_prob != nullptr ? given.by_log_prob + shapes.first(i) : nullptr;
        const Normaliser<C> norm = normaliser<By>(shapes, from);
        const int64_t label = given.labels[i];
        const bool counts = shapes.is_counted(label), is_class = shapes.is_class(label);
        C sum = 0, share = 0;
        if (counts)
            share = is_class ? static_cast<C>(given.by_position(shapes, i) * weight_at(given.weights, label)) : C(NAN);
        for (int64_t c = Part::first_class(); c < shapes.classes && h != nullptr; c += Part::class_step()) {
            sum += static_cast<C>(h[c * shapes.pixels]);
        }
        sum = By::sum(sum);
        for (int64_t c = Part::first_class(); c < shapes.classes; c += Part::class_step()) {
            const C log_p = (static_cast<C>(from[c * shapes.pixels]) - norm.largest) - norm.log_sum;
            C value = 0;
            if (counts) value = c == label ? share * expm1(log_p) : share * exp(log_p);
            if (h != nullptr) value += static_cast<C>(h[c * shapes.pixels]) - exp(log_p) * sum;
            if (by_scores != nullptr) by_scores[shapes.first(i) + c * shapes.pixels] = T(value);
            if (picked != nullptr && c == label) picked[i] = static_cast<double>(log_p);
        }
    }
}

// The gradient by the weights, a block for each class.
template <typename T>
__global__ void by_weights_kernel(EntropyShapes shapes, EntropyGradients<T> given, const double* picked,
                                  T* by_weights) {
    double mean = 0;
    for (int64_t i = threadIdx.x; i < shapes.positions() && shapes.reduction == Reduction::kMean; i += blockDim.x) {
        const int64_t label = given.labels[i];
        if (shapes.is_counted(label) && shapes.is_class(label)) mean -= picked[i] * weight_at(given.weights, label);
    }
    mean = deep500::block_sum(mean) / *given.whole;
    for (int64_t c = blockIdx.x; c < shapes.classes; c += gridDim.x) {
        double sum = 0;
        for (int64_t i = threadIdx.x; i < shapes.positions(); i += blockDim.x) {
            const bool counts = given.labels[i] == c && shapes.is_counted(c);
            if (counts) sum -= given.by_position(shapes, i) * (picked[i] + mean);
        }
        sum = deep500::block_sum(sum);
        if (threadIdx.x == 0) by_weights[c] = T(sum);
    }
}

struct SoftmaxCrossEntropyCuda : SoftmaxCrossEntropy {
    template <typename T>
    static void forward_cuda(deep500::View<const T> scores, deep500::View<const int64_t> labels,
                             deep500::Optional<const T> weights, deep500::View<T> loss, deep500::View<T> log_prob,
                             deep500::Attributes attributes, deep500::Stream stream) {
        const EntropyShapes shapes(scores, labels, weights, loss, attributes);
        deep500::require_same_shape(scores, log_prob, "scores", "log_prob");
        const T* factors = weights ? weights.data() : nullptr;
        const deep500::DeviceBuffer<double> losses(shapes.positions(), stream), whole(1, stream);
        start(shapes, log_prob_kernel<ByBlock, T>, log_prob_kernel<ByThread, T>, stream, shapes, scores.data(),
              labels.data(), factors, log_prob.data(), losses.data());
        deep500::launch_blocks(divisor_kernel<T>, 1, stream, shapes, labels.data(), factors, whole.data());
        const int64_t items = shapes.reduction == Reduction::kNone ? shapes.positions() : 1;
        deep500::launch(loss_kernel<T>, items, stream, shapes, losses.data(), whole.data(), loss.data());
    }

    template <typename T>
    static void backward_cuda(deep500::Optional<const T> by_loss, deep500::Optional<const T> by_log_prob,
                              deep500::View<const T> scores, deep500::View<const int64_t> labels,
                              deep500::Optional<const T> weights, deep500::View<const T> loss,
                              deep500::View<const T> log_prob, deep500::Optional<T> by_scores,
                              deep500::Optional<T> by_weights, deep500::Attributes attributes, deep500::Stream stream) {
        const EntropyShapes shapes(scores, labels, weights, loss, attributes);
        deep500::require_same_shape(scores, log_prob, "scores", "log_prob");
        const deep500::DeviceBuffer<double> picked(by_weights ? shapes.positions() : 0, stream), whole(1, stream);
        const EntropyGradients<T> given = {by_loss ? by_loss.data() : nullptr,
                                           by_log_prob ? by_log_prob.data() : nullptr,
                                           scores.data(),
                                           labels.data(),
                                           weights ? weights.data() : nullptr,
                                           whole.data()};
        deep500::launch_blocks(divisor_kernel<T>, 1, stream, shapes, given.labels, given.weights, whole.data());
        T* target = by_scores ? by_scores.data() : nullptr;
        start(shapes, by_scores_kernel<ByBlock, T>, by_scores_kernel<ByThread, T>, stream, shapes, given, target,
              picked.data());
        if (by_weights) {
            deep500::launch_blocks(by_weights_kernel<T>, shapes.classes, stream, shapes, given, picked.data(),
                                   by_weights.data());
        }
    }

  private:
    // Starts the kernel that suits the shapes.
    template <typename Kernel, typename... A>
    static void start(const EntropyShapes& shapes, Kernel by_block, Kernel by_thread, deep500::Stream stream,
                      A... arguments) {
        if (shapes.pixels == 1) {
            deep500::launch_blocks(by_block, shapes.positions(), stream, arguments...);
        } else {
            deep500::launch(by_thread, shapes.positions(), stream, arguments...);
        }
    }
};

}  // namespace native_ops

D500_OPERATOR(softmax_crossentropy, native_ops::SoftmaxCrossEntropyCuda)
