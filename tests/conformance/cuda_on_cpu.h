// Stands in for CUDA where there is no GPU: kernels run on the processor, a block after the other, so that what they
// compute can be checked. Included before everything else by a C++ file that then includes a .cu file.
//
// A thread of a block is a coroutine that runs until __syncthreads; the next one follows, until all have come so far.
// That finds wrong indices, sums and barriers that not all threads reach, but no race between two barriers.
#ifndef CUDA_ON_CPU_H
#define CUDA_ON_CPU_H

#include <math.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __CUDACC__
#define __global__
#define __device__
#define __host__
#define __shared__ static

struct CUstream_st;
using cudaStream_t = CUstream_st*;
enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorLaunchFailure = 719 };

namespace cuda_on_cpu {

struct Dimension {
    unsigned x = 0;
};
inline Dimension thread, block, threads, blocks;
inline cudaError_t last_error = cudaSuccess;

class Block {
  public:
    explicit Block(unsigned size) : contexts_(size), states_(size), stacks_(size, std::vector<char>(kStackBytes)) {}

    // Runs a kernel in every thread. Returns whether all threads reached the same barriers.
    bool run(const std::function<void()>& kernel) {
        kernel_ = &kernel;
        current() = this;
        for (size_t i = 0; i < contexts_.size(); ++i) {
            states_[i] = State::kRunning;
            getcontext(&contexts_[i]);
            contexts_[i].uc_stack.ss_sp = stacks_[i].data();
            contexts_[i].uc_stack.ss_size = kStackBytes;
            contexts_[i].uc_link = &scheduler_;
            makecontext(&contexts_[i], enter, 0);
        }
        while (true) {
            size_t done = 0;
            for (at_ = 0; at_ < contexts_.size(); ++at_) {
                thread.x = static_cast<unsigned>(at_);
                if (states_[at_] != State::kDone) swapcontext(&scheduler_, &contexts_[at_]);
                done += states_[at_] == State::kDone;
            }
            if (done == contexts_.size()) return true;
            if (done > 0) return false;
        }
    }
    void wait() { swapcontext(&contexts_[at_], &scheduler_); }

    static Block*& current() {
        static Block* block = nullptr;
        return block;
    }

  private:
    static constexpr size_t kStackBytes = 64 << 10;
    enum class State { kRunning, kDone };

    static void enter() {
        (*current()->kernel_)();
        current()->states_[current()->at_] = State::kDone;
    }

    const std::function<void()>* kernel_ = nullptr;
    ucontext_t scheduler_;
    std::vector<ucontext_t> contexts_;
    std::vector<State> states_;
    std::vector<std::vector<char>> stacks_;
    size_t at_ = 0;
};

inline void run(unsigned block_count, unsigned thread_count, const std::function<void()>& kernel) {
    Block now(thread_count);
    blocks.x = block_count;
    threads.x = thread_count;
    for (block.x = 0; block.x < block_count; ++block.x) {
        if (!now.run(kernel)) last_error = cudaErrorLaunchFailure;
    }
}

}  // namespace cuda_on_cpu

#define threadIdx ::cuda_on_cpu::thread
#define blockIdx ::cuda_on_cpu::block
#define blockDim ::cuda_on_cpu::threads
#define gridDim ::cuda_on_cpu::blocks
#define D500_LAUNCH(KERNEL, BLOCKS, THREADS, STREAM, ...) \
    (void)STREAM, ::cuda_on_cpu::run(BLOCKS, THREADS, [&] { KERNEL(__VA_ARGS__); })

inline void __syncthreads() {
    ::cuda_on_cpu::Block::current()->wait();
}
template <typename N>
N atomicAdd(N* sum, N value) {
    const N before = *sum;
    *sum += value;
    return before;
}

inline cudaError_t cudaGetLastError() {
    const cudaError_t error = ::cuda_on_cpu::last_error;
    ::cuda_on_cpu::last_error = cudaSuccess;
    return error;
}
inline const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorLaunchFailure ? "not all threads of a block reach a barrier" : "an error";
}
inline cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}
// Memory is filled with what no result should contain, for CUDA's is not initialised.
inline cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t) {
    *data = std::malloc(bytes);
    if (*data == nullptr) return cudaErrorMemoryAllocation;
    std::memset(*data, 0xff, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) {
    std::free(data);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
    std::memset(data, value, bytes);
    return cudaSuccess;
}

#endif
