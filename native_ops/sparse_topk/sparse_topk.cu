#include <deep500/cuda.h>

#include "sparse_topk.h"

namespace native_ops {

using Counter = unsigned long long;  // what CUDA adds atomically

// What the passes over x find out, on the device.
template <typename Bits>
struct TopKState {
    Selection<Bits> selection;
    Counter counts[kDigits];
};

template <typename Bits>
__global__ void begin_kernel(TopKState<Bits>* state, int64_t k) {
    for (int digit = static_cast<int>(threadIdx.x); digit < kDigits; digit += static_cast<int>(blockDim.x)) {
        state->counts[digit] = 0;
    }
    if (threadIdx.x == 0) state->selection = {0, k};
}

// Counts the digits at `shift` of elements that begin as the threshold does.
template <typename T, typename Bits>
__global__ void count_kernel(const T* x, int64_t size, int shift, TopKState<Bits>* state) {
    __shared__ Counter own[kDigits];
    for (int digit = static_cast<int>(threadIdx.x); digit < kDigits; digit += static_cast<int>(blockDim.x))
        own[digit] = 0;
    const Bits threshold = state->selection.threshold;
    __syncthreads();
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        const Bits found = magnitude(x[i]);
        if (begins_with(found, threshold, shift)) atomicAdd(&own[digit_of(found, shift)], Counter(1));
    }
    __syncthreads();
    for (int digit = static_cast<int>(threadIdx.x); digit < kDigits; digit += static_cast<int>(blockDim.x)) {
        if (own[digit] > 0) atomicAdd(&state->counts[digit], own[digit]);
    }
}

// Finds the threshold's digit at `shift`, and begins to count anew. Run by one block.
template <typename Bits>
__global__ void refine_kernel(int shift, TopKState<Bits>* state) {
    if (threadIdx.x == 0) refine(state->selection, state->counts, shift);
    __syncthreads();
    for (int digit = static_cast<int>(threadIdx.x); digit < kDigits; digit += static_cast<int>(blockDim.x)) {
        state->counts[digit] = 0;
    }
}

// A part of x is what one block takes the elements of: so many for each of its threads, neighbours.
constexpr int64_t kThreadElements = 16, kBlockElements = kThreadElements * deep500::kBlockThreads;

// Counts what the elements [begin, end) pass.
template <typename T, typename Bits>
__device__ Passed passed_by(const T* x, int64_t begin, int64_t end, const Selection<Bits>& selection) {
    Passed counts = {0, 0};
    for (int64_t i = begin; i < end; ++i) {
        const Bits found = magnitude(x[i]);
        counts.above += found > selection.threshold;
        counts.equal += found == selection.threshold;
    }
    return counts;
}

// Counts what each part of x passes.
template <typename T, typename Bits>
__global__ void pass_kernel(const T* x, int64_t size, const TopKState<Bits>* state, Passed* passed) {
    for (int64_t part = blockIdx.x; part * kBlockElements < size; part += gridDim.x) {
        const int64_t first = part * kBlockElements + threadIdx.x * kThreadElements;
        const int64_t last = first + kThreadElements < size ? first + kThreadElements : size;
        const Passed counts = passed_by(x, first, last, state->selection);
        const int64_t above = deep500::block_sum(counts.above), equal = deep500::block_sum(counts.equal);
        if (threadIdx.x == 0) passed[part] = {above, equal};
    }
}

// Turns the counts of all parts into those before each part. Run by one block, whose threads take neighbouring parts.
__global__ void scan_kernel(Passed* passed, int64_t parts) {
    __shared__ Passed sums[deep500::kBlockThreads];
    const int64_t each = (parts + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
    Passed sum = {0, 0};
    for (int64_t part = first; part < parts && part < first + each; ++part) {
        sum = {sum.above + passed[part].above, sum.equal + passed[part].equal};
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    Passed before = {0, 0};
    for (int thread = 0; thread < static_cast<int>(threadIdx.x); ++thread) {
        before = {before.above + sums[thread].above, before.equal + sums[thread].equal};
    }
    for (int64_t part = first; part < parts && part < first + each; ++part) {
        const Passed counts = passed[part];
        passed[part] = before;
        before = {before.above + counts.above, before.equal + counts.equal};
    }
}

// Writes what is taken.
template <typename T, typename Bits>
__global__ void take_kernel(const T* x, int64_t size, const TopKState<Bits>* state, const Passed* passed, T* values,
                            int64_t* indices) {
    __shared__ Passed sums[deep500::kBlockThreads];
    const Selection<Bits> selection = state->selection;
    for (int64_t part = blockIdx.x; part * kBlockElements < size; part += gridDim.x) {
        const int64_t first = part * kBlockElements + threadIdx.x * kThreadElements;
        const int64_t last = first + kThreadElements < size ? first + kThreadElements : size;
        __syncthreads();  // the sums of the part before have been read
        sums[threadIdx.x] = passed_by(x, first, last, selection);
        __syncthreads();
        Passed counts = passed[part];
        for (int thread = 0; thread < static_cast<int>(threadIdx.x); ++thread) {
            counts = {counts.above + sums[thread].above, counts.equal + sums[thread].equal};
        }
        for (int64_t i = first; i < last; ++i) {
            const Bits found = magnitude(x[i]);
            const int64_t to = target(found, selection, counts);
            if (to >= 0) {
                values[to] = x[i];
                indices[to] = i;
            }
            counts.above += found > selection.threshold;
            counts.equal += found == selection.threshold;
        }
    }
}

// An index that is none is left out, for nobody waits to be told.
template <typename T>
__global__ void scatter_kernel(const T* values_gradient, const int64_t* indices, int64_t k, T* x_gradient,
                               int64_t size) {
    for (int64_t i = deep500::first_item(); i < k; i += deep500::item_step()) {
        if (0 <= indices[i] && indices[i] < size) x_gradient[indices[i]] = values_gradient[i];
    }
}

struct SparseTopKCuda : SparseTopK {
    template <typename T>
    static void forward_cuda(deep500::View<const T> x, deep500::View<T> values, deep500::View<int64_t> indices,
                             deep500::Attributes attributes, deep500::Stream stream) {
        using Bits = typename FloatBits<T>::type;
        const int64_t k = checked_number(x, values, indices, attributes);
        if (k == 0) return;
        const int64_t parts = (x.size() + kBlockElements - 1) / kBlockElements;
        const deep500::DeviceBuffer<TopKState<Bits>> state(1, stream);
        const deep500::DeviceBuffer<Passed> passed(parts, stream);
        deep500::launch_blocks(begin_kernel<Bits>, 1, stream, state.data(), k);
        for (int shift = static_cast<int>(8 * sizeof(Bits)) - kDigitBits; shift >= 0; shift -= kDigitBits) {
            deep500::launch(count_kernel<T, Bits>, parts * deep500::kBlockThreads, stream, x.data(), x.size(), shift,
                            state.data());
            deep500::launch_blocks(refine_kernel<Bits>, 1, stream, shift, state.data());
        }
        deep500::launch_blocks(pass_kernel<T, Bits>, parts, stream, x.data(), x.size(), state.data(), passed.data());
        deep500::launch_blocks(scan_kernel, 1, stream, passed.data(), parts);
        deep500::launch_blocks(take_kernel<T, Bits>, parts, stream, x.data(), x.size(), state.data(), passed.data(),
                               values.data(), indices.data());
    }

    template <typename T>
    static void backward_cuda(deep500::View<const T> values_gradient, deep500::View<const T>,
                              deep500::View<const int64_t> indices, deep500::View<T> x_gradient,
                              deep500::Stream stream) {
        deep500::require_same_shape(values_gradient, indices, "the gradient by values", "indices");
        deep500::fill_zeros(x_gradient, stream);
        deep500::launch(scatter_kernel<T>, indices.size(), stream, values_gradient.data(), indices.data(),
                        indices.size(), x_gradient.data(), x_gradient.size());
    }
};

}  // namespace native_ops

D500_OPERATOR(sparse_topk, native_ops::SparseTopKCuda)
