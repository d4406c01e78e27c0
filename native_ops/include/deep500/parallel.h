// Loops that are divided among the processor's cores where that pays.
#ifndef DEEP500_PARALLEL_H
#define DEEP500_PARALLEL_H

#include <deep500/tensor.h>

#include <algorithm>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace deep500 {

// Steps (a load, a few operations and a store) that are worth another thread, which takes microseconds to start.
constexpr int64_t kStepsPerThread = 32768;

namespace detail {

D500_NOINLINE inline int thread_count(int64_t items, double steps_per_item) {
#ifdef _OPENMP
    const double worth = static_cast<double>(items) * steps_per_item / kStepsPerThread;
    if (worth < 2 || omp_in_parallel()) return 1;
    const double most = std::min(static_cast<double>(omp_get_max_threads()), static_cast<double>(items));
    return std::max(1, static_cast<int>(std::min(worth, most)));
#else
    (void)items, (void)steps_per_item;
    return 1;
#endif
}

// Carries the first exception out of a parallel region, which none may leave.
class Carrier {
  public:
    template <typename Body>
    void run(Body&& body) {
        try {
            body();
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!error_) error_ = std::current_exception();
        }
    }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

  private:
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace detail

// Calls body(begin, end) for parts of [0, count) that together are all of it, each in a thread of its own. There is
// only one part where the work, of so many steps an item, is too little for more.
template <typename Body>
void parallel_for(int64_t count, double steps_per_item, Body&& body) {
    if (count <= 0) return;
    const int threads = detail::thread_count(count, steps_per_item);
    if (threads == 1) {
        body(static_cast<int64_t>(0), count);
        return;
    }
#ifdef _OPENMP
    detail::Carrier carrier;
#pragma omp parallel num_threads(threads)
    {
        const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
        const int64_t begin = count / parts * part + std::min(part, count % parts);
        const int64_t end = begin + count / parts + (part < count % parts ? 1 : 0);
        if (begin < end) carrier.run([&] { body(begin, end); });
    }
    carrier.rethrow();
#endif
}

}  // namespace deep500

#endif
