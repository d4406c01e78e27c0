/* The border between an operator's shared library and whoever calls it: plain C, no dependency, layouts that do not
 * change within one version.
 *
 * A library of an operator NAME exports
 *
 *   const char* d5_NAME_describe(void);          JSON: what the operator takes and gives
 *   int32_t d5_NAME_forward(const d5_call*);
 *   int32_t d5_NAME_backward(const d5_call*);    only of a differentiable operator
 *   int32_t d5_NAME_second(const d5_call*);      only where the backward can be differentiated once more
 *
 * No exception crosses the border. The caller allocates everything, the outputs as well, and nothing is kept after a
 * call. */
#ifndef DEEP500_ABI_H
#define DEEP500_ABI_H

#include <stdint.h>

#define DEEP500_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns. */
enum {
    D5_OK = 0,
    D5_FAILED = 1,            /* the operator says why in d5_call.error */
    D5_UNSUPPORTED_DTYPE = 2, /* the message names it */
    D5_WRONG_ARGUMENTS = 3    /* number, rank, shape, device or attributes; the message says which */
};

/* Codes of DLPack: device types and kinds of dtypes. */
enum { D5_CPU = 1, D5_CUDA = 2 };
enum { D5_INT = 0, D5_UINT = 1, D5_FLOAT = 2, D5_BFLOAT = 4, D5_COMPLEX = 5, D5_BOOL = 6 };

/* Layout of DLPack's DLDataType. */
typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes; /* always 1 */
} d5_dtype;

/* Layout of DLPack's DLTensor. An absent tensor has ndim -1 and no data. */
typedef struct {
    void* data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    d5_dtype dtype;
    const int64_t* shape;
    const int64_t* strides; /* in elements; NULL for row-major without gaps */
    uint64_t byte_offset;
} d5_tensor;

typedef enum {
    D5_ATTRIBUTE_INT = 1,
    D5_ATTRIBUTE_FLOAT = 2,
    D5_ATTRIBUTE_STRING = 3,
    D5_ATTRIBUTE_INTS = 4,
    D5_ATTRIBUTE_FLOATS = 5
} d5_attribute_kind;

typedef struct {
    const char* name;
    int32_t kind;
    int32_t count; /* number of values; 1 for a single one, the length in bytes for a string */
    const int64_t* ints;
    const double* floats;
    const char* string; /* ends with a zero byte */
} d5_attribute;

typedef struct {
    int32_t abi_version; /* DEEP500_ABI_VERSION of the caller */
    int32_t device_type; /* where all tensors lie */
    int32_t input_count;
    int32_t output_count;
    int32_t attribute_count;
    int32_t reserved; /* 0 */
    /* forward: the inputs. backward: the gradients by the outputs, then the forward's inputs, then its outputs; absent
     * where nobody knows them. second: the gradients by the backward's outputs, then all that the backward was given.
     */
    const d5_tensor* inputs;
    /* forward: the outputs. backward: the gradients by the inputs. second: those by all that the backward was given.
     * Absent where nobody asks. Row-major without gaps, not initialised. */
    d5_tensor* outputs;
    const d5_attribute* attributes;
    void* stream; /* cudaStream_t; NULL on the CPU */
    char* error;  /* where the message of a failure goes, ended by a zero byte */
    uint64_t error_size_bytes;
} d5_call;

typedef int32_t (*d5_function)(const d5_call*);
typedef const char* (*d5_describe_function)(void);

#ifdef __cplusplus
}
#endif

#endif
