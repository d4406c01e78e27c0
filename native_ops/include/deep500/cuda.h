// What kernels share: how they are started, loops over all threads, sums over the threads of a block, memory for one
// call. Everything runs on the stream of the call, and nothing waits for the device.
#ifndef DEEP500_CUDA_H
#define DEEP500_CUDA_H

#include <deep500/detail/call.h>

#ifndef __CUDACC__
#error "deep500: <deep500/cuda.h> is for files that nvcc compiles (.cu)"
#endif

#ifndef D500_LAUNCH  // which stand-ins for CUDA define
#define D500_LAUNCH(KERNEL, BLOCKS, THREADS, STREAM, ...) KERNEL<<<BLOCKS, THREADS, 0, STREAM>>>(__VA_ARGS__)
#endif

namespace deep500 {

// Threads of every block. Sums over a block count on a power of two.
constexpr int kBlockThreads = 256;

// More blocks than this do not make a device busier; threads then take several items each.
constexpr int64_t kMostBlocks = 32768;

// Starts a kernel with a thread for each of so many items. Where there are none, nothing is started.
template <typename... P, typename... A>
void launch(void (*kernel)(P...), int64_t items, Stream stream, A... arguments) {
    if (items <= 0) return;
    const int64_t blocks = (items + kBlockThreads - 1) / kBlockThreads;
    D500_LAUNCH(kernel, static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kBlockThreads, stream,
                static_cast<P>(arguments)...);
    detail::check_cuda(cudaGetLastError(), "starting a kernel");
}

// Starts a kernel with a block for each of so many items.
template <typename... P, typename... A>
void launch_blocks(void (*kernel)(P...), int64_t items, Stream stream, A... arguments) {
    launch(kernel, items * kBlockThreads, stream, arguments...);
}

// The first item of a thread, and the distance to its next.
__device__ inline int64_t first_item() {
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t item_step() {
    return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

// The result of a block's threads together, which every one of them gets. All of them must call it.
template <typename N, typename Combine>
__device__ N over_block(N value, Combine combine) {
    __shared__ N values[kBlockThreads];
    __syncthreads();  // the values of the call before have been read
    values[threadIdx.x] = value;
    __syncthreads();
    for (int half = kBlockThreads / 2; half > 0; half /= 2) {
        if (static_cast<int>(threadIdx.x) < half) {
            values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return values[0];
}

struct Plus {
    template <typename N>
    __device__ N operator()(N a, N b) const {
        return a + b;
    }
};
template <typename N>
__device__ N block_sum(N value) {
    return over_block(value, Plus());
}

// Memory on the device for the time of one call, in the order of its stream. It is not initialised.
template <typename N>
class DeviceBuffer {
  public:
    DeviceBuffer(int64_t size, Stream stream) : stream_(stream) {
        if (size <= 0) return;
        void* data = nullptr;
        detail::check_cuda(cudaMallocAsync(&data, static_cast<size_t>(size) * sizeof(N), stream), "taking memory");
        data_ = static_cast<N*>(data);
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    ~DeviceBuffer() {
        if (data_ != nullptr) cudaFreeAsync(data_, stream_);
    }
    N* data() const { return data_; }

  private:
    N* data_ = nullptr;
    Stream stream_;
};

// Fills a tensor with zeros; those of floats and of whole numbers are bytes of zero.
template <typename T>
void fill_zeros(const View<T>& tensor, Stream stream) {
    if (tensor.size() == 0) return;
    const size_t bytes = static_cast<size_t>(tensor.size()) * sizeof(T);
    detail::check_cuda(cudaMemsetAsync(tensor.data(), 0, bytes, stream), "filling memory");
}

}  // namespace deep500

#endif
