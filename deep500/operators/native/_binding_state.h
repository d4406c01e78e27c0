// What a Caller knows: attributes, shapes and dtypes of former calls; and how arrays become tensors of the border.
#ifndef DEEP500_BINDING_STATE_H
#define DEEP500_BINDING_STATE_H

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <deep500/abi.h>
#include <numpy/arrayobject.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

static_assert(sizeof(npy_intp) == sizeof(int64_t), "NumPy's sizes must be of 64 bits");

namespace {

int bfloat16_number = -1;            // NumPy's number of the dtype, which another package defines
PyObject* operator_error = nullptr;  // deep500.core.errors.OperatorError

constexpr size_t kRemembered = 8;  // sets of shapes
constexpr size_t kErrorBytes = 1024;
constexpr size_t kInPlace = 24;  // tensors that need no memory of their own

// One object of Python, released at the end.
class Owned {
  public:
    explicit Owned(PyObject* object = nullptr) : object_(object) {}
    Owned(Owned&& other) noexcept : object_(other.release()) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Owned() { Py_XDECREF(object_); }
    PyObject* get() const { return object_; }
    PyObject* release() {
        PyObject* object = object_;
        object_ = nullptr;
        return object;
    }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    PyObject* object_;
};

struct Attribute {
    std::string name, text;
    int32_t kind;
    std::vector<int64_t> ints;
    std::vector<double> floats;
};

// What an output is like; absent where nobody asks for it.
struct Output {
    Owned dtype;
    std::vector<npy_intp> shape;
    d5_dtype type = {};
};

// Shapes and dtypes of a call, and what its outputs are like.
struct Remembered {
    std::vector<d5_tensor> inputs;  // without data
    std::vector<std::vector<int64_t>> shapes;
    std::vector<Output> outputs;
};

struct State {
    d5_function function;
    std::string name;
    Py_ssize_t input_count;
    bool always_tuple;
    std::vector<Attribute> attributes;
    std::vector<d5_attribute> attribute_views;
    std::shared_ptr<const Remembered> remembered[kRemembered];
    size_t next = 0, latest = 0;
};

struct Caller {
    PyObject_HEAD vectorcallfunc call;
    State* state;
    PyObject* resolve;
};

d5_dtype type_of(PyArray_Descr* dtype) {
    const int bits = static_cast<int>(8 * PyDataType_ELSIZE(dtype));
    uint8_t code = 255;  // which no library accepts
    switch (dtype->kind) {
        case 'i':
            code = D5_INT;
            break;
        case 'u':
            code = D5_UINT;
            break;
        case 'f':
            code = D5_FLOAT;
            break;
        case 'c':
            code = D5_COMPLEX;
            break;
        case 'b':
            code = D5_BOOL;
            break;
    }
    if (dtype->type_num >= NPY_USERDEF) code = dtype->type_num == bfloat16_number ? D5_BFLOAT : 255;
    return {code, static_cast<uint8_t>(bits > 255 ? 255 : bits), 1};
}

bool same_type(d5_dtype a, d5_dtype b) {
    return a.code == b.code && a.bits == b.bits;
}

// Returns the array, or a copy of it that is row-major without gaps, aligned, and in the machine's order of bytes.
Owned as_array(PyObject* object) {
    if (PyArray_Check(object)) {
        PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
        if (PyArray_ISCARRAY_RO(array)) {
            Py_INCREF(object);
            return Owned(object);
        }
    }
    return Owned(PyArray_CheckFromAny(object, nullptr, 0, 0, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED, nullptr));
}

void describe(PyObject* array_or_none, d5_tensor& tensor) {
    tensor = {};
    tensor.device_type = D5_CPU;
    if (array_or_none == Py_None) {
        tensor.ndim = -1;
        return;
    }
    PyArrayObject* array = reinterpret_cast<PyArrayObject*>(array_or_none);
    tensor.data = PyArray_DATA(array);
    tensor.ndim = PyArray_NDIM(array);
    tensor.dtype = type_of(PyArray_DESCR(array));
    tensor.shape = reinterpret_cast<const int64_t*>(PyArray_DIMS(array));
}

bool fits(const Remembered& remembered, const d5_tensor* inputs, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const d5_tensor &known = remembered.inputs[i], &given = inputs[i];
        if (known.ndim != given.ndim || !same_type(known.dtype, given.dtype)) return false;
        for (int32_t d = 0; d < given.ndim; ++d) {
            if (remembered.shapes[i][d] != given.shape[d]) return false;
        }
    }
    return true;
}

// Reads one attribute, (name, kind, value).
bool read_attribute(PyObject* item, Attribute& attribute) {
    const char* name;
    PyObject* value;
    if (!PyArg_ParseTuple(item, "siO", &name, &attribute.kind, &value)) return false;
    attribute.name = name;
    if (attribute.kind == D5_ATTRIBUTE_STRING) {
        Py_ssize_t size;
        const char* text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text == nullptr) return false;
        attribute.text.assign(text, static_cast<size_t>(size));
        return true;
    }
    const bool many = attribute.kind == D5_ATTRIBUTE_INTS || attribute.kind == D5_ATTRIBUTE_FLOATS;
    const bool whole = attribute.kind == D5_ATTRIBUTE_INT || attribute.kind == D5_ATTRIBUTE_INTS;
    Owned values(many ? PySequence_Tuple(value) : PyTuple_Pack(1, value));
    if (!values) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values.get()); ++i) {
        PyObject* entry = PyTuple_GET_ITEM(values.get(), i);
        if (whole) {
            attribute.ints.push_back(PyLong_AsLongLong(entry));
        } else {
            attribute.floats.push_back(PyFloat_AsDouble(entry));
        }
    }
    return PyErr_Occurred() == nullptr;
}

d5_attribute view_of(const Attribute& attribute) {
    d5_attribute view = {};
    view.name = attribute.name.c_str();
    view.kind = attribute.kind;
    view.ints = attribute.ints.data();
    view.floats = attribute.floats.data();
    view.string = attribute.text.c_str();
    view.count =
        static_cast<int32_t>(attribute.kind == D5_ATTRIBUTE_STRING ? attribute.text.size()
                                                                   : attribute.ints.size() + attribute.floats.size());
    return view;
}

}  // namespace

#endif
