// Calls functions of the border (deep500/abi.h) with NumPy arrays: a type `Caller` for Python.
//
// All that costs time is remembered with the shapes and dtypes of a call: Python is asked (`resolve`) only for those
// that are new, and says there whether they are accepted and what the outputs are like. No element is looked at before.
#include "_binding_state.h"

namespace {

// Calls resolve(shapes, dtypes), which returns (shape, dtype) or None for every output.
std::shared_ptr<const Remembered> ask(Caller* self, PyObject* const* arrays, const d5_tensor* inputs) {
    const Py_ssize_t count = self->state->input_count;
    Owned shapes(PyTuple_New(count)), dtypes(PyTuple_New(count));
    if (!shapes || !dtypes) return nullptr;
    const auto result = std::make_shared<Remembered>();
    result->inputs.assign(inputs, inputs + count);
    for (Py_ssize_t i = 0; i < count; ++i) {
        const bool absent = inputs[i].ndim < 0;
        result->shapes.emplace_back(inputs[i].shape, inputs[i].shape + (absent ? 0 : inputs[i].ndim));
        PyObject* shape = absent ? Py_NewRef(Py_None) : PyObject_GetAttrString(arrays[i], "shape");
        PyObject* dtype = absent ? Py_NewRef(Py_None) : PyObject_GetAttrString(arrays[i], "dtype");
        if (shape != nullptr) PyTuple_SET_ITEM(shapes.get(), i, shape);
        if (dtype != nullptr) PyTuple_SET_ITEM(dtypes.get(), i, dtype);
        if (shape == nullptr || dtype == nullptr) return nullptr;
    }
    Owned answer(PyObject_CallFunctionObjArgs(self->resolve, shapes.get(), dtypes.get(), nullptr));
    Owned outputs(answer ? PySequence_Fast(answer.get(), "resolve must return a sequence") : nullptr);
    if (!outputs) return nullptr;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(outputs.get()); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(outputs.get(), i);
        Output output;
        if (item != Py_None) {
            PyObject *shape, *dtype;
            if (!PyTuple_Check(item)) {
                PyErr_SetString(PyExc_TypeError, "resolve must return (shape, dtype) or None for every output");
                return nullptr;
            }
            if (!PyArg_ParseTuple(item, "O!O!", &PyTuple_Type, &shape, &PyArrayDescr_Type, &dtype)) return nullptr;
            for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); ++d) {
                const Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
                if (size < 0 && PyErr_Occurred()) return nullptr;
                output.shape.push_back(size);
            }
            output.type = type_of(reinterpret_cast<PyArray_Descr*>(dtype));
            output.dtype = Owned(Py_NewRef(dtype));
        }
        result->outputs.push_back(std::move(output));
    }
    return result;
}

// Returns what is remembered of a call like this, after asking Python when it is new; null with an error set. Whatever
// Python runs meanwhile, a collection of garbage perhaps, may call the operator too, so that the call keeps what it
// uses.
std::shared_ptr<const Remembered> look_up(Caller* self, PyObject* const* arrays, const d5_tensor* inputs) {
    State& state = *self->state;
    const size_t count = static_cast<size_t>(state.input_count);
    for (size_t i = 0; i < kRemembered; ++i) {
        const size_t place = (state.latest + i) % kRemembered;
        const std::shared_ptr<const Remembered>& known = state.remembered[place];
        if (known != nullptr && fits(*known, inputs, count)) {
            state.latest = place;
            return known;
        }
    }
    std::shared_ptr<const Remembered> fresh = ask(self, arrays, inputs);
    if (!fresh) return nullptr;
    state.latest = state.next;
    state.next = (state.next + 1) % kRemembered;
    // What was there is let go last: it may run code of Python.
    const std::shared_ptr<const Remembered> former = std::exchange(state.remembered[state.latest], fresh);
    return fresh;
}

PyObject* failure(const State& state, const char* message) {
    return PyErr_Format(operator_error, "%s: %s", state.name.c_str(),
                        message[0] ? message : "failed without a message");
}

// Takes arrays that are as they must be, and a buffer for the tensors of inputs and outputs.
PyObject* run(Caller* self, PyObject* const* arrays, d5_tensor* inputs, const Remembered& known, d5_tensor* outputs) {
    const State& state = *self->state;
    const Py_ssize_t count = static_cast<Py_ssize_t>(known.outputs.size());
    const bool single = count == 1 && !state.always_tuple;
    Owned results(single ? nullptr : PyTuple_New(count));
    if (!single && !results) return nullptr;
    PyObject* only = nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
        const Output& output = known.outputs[i];
        PyObject* array = Py_None;
        if (output.dtype) {
            array = PyArray_Empty(static_cast<int>(output.shape.size()), output.shape.data(),
                                  reinterpret_cast<PyArray_Descr*>(Py_NewRef(output.dtype.get())), 0);
            if (array == nullptr) return nullptr;
        } else {
            Py_INCREF(array);
        }
        if (single) {
            only = array;
        } else {
            PyTuple_SET_ITEM(results.get(), i, array);
        }
        describe(array, outputs[i]);
    }
    if (single) results = Owned(only);

    char message[kErrorBytes];
    message[0] = 0;
    d5_call call = {};
    call.abi_version = DEEP500_ABI_VERSION;
    call.device_type = D5_CPU;
    call.input_count = static_cast<int32_t>(state.input_count);
    call.output_count = static_cast<int32_t>(count);
    call.attribute_count = static_cast<int32_t>(state.attribute_views.size());
    call.inputs = inputs;
    call.outputs = outputs;
    call.attributes = state.attribute_views.data();
    call.error = message;
    call.error_size_bytes = sizeof message;
    int32_t status;
    // Nothing of Python is used until the function returns.
    Py_BEGIN_ALLOW_THREADS status = state.function(&call);
    Py_END_ALLOW_THREADS if (status != D5_OK) return failure(state, message);
    return results.release();
}

// Says of which input NumPy makes no array; what is no such refusal, such as a lack of memory, stays as it is.
void explain(const State& state, Py_ssize_t index) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception)) return;
    PyObject *type, *cause, *traceback;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    if (traceback != nullptr) PyException_SetTraceback(cause, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    PyErr_Format(operator_error, "%s was given something as input %zd of which NumPy makes no array: %S",
                 state.name.c_str(), index, cause);
    PyObject* error;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    PyException_SetCause(error, cause);
    PyErr_Restore(type, error, traceback);
}

PyObject* caller_call(PyObject* object, PyObject* const* arguments, size_t nargsf, PyObject* names) {
    Caller* self = reinterpret_cast<Caller*>(object);
    const State& state = *self->state;
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (names != nullptr && PyTuple_GET_SIZE(names) > 0) return failure(state, "tensors are given without names");
    if (count != state.input_count) {
        return PyErr_Format(operator_error, "%s was given %zd tensors; accepted are %zd.", state.name.c_str(), count,
                            state.input_count);
    }
    PyObject* arrays_in_place[kInPlace];
    d5_tensor tensors_in_place[2 * kInPlace];
    std::vector<PyObject*> more_arrays;
    std::vector<d5_tensor> more_tensors;
    PyObject** arrays = arrays_in_place;
    d5_tensor* inputs = tensors_in_place;
    if (static_cast<size_t>(count) > kInPlace) {
        more_arrays.resize(count);
        more_tensors.resize(count);
        arrays = more_arrays.data();
        inputs = more_tensors.data();
    }
    PyObject* result = nullptr;
    Py_ssize_t made = 0;
    for (; made < count; ++made) {
        arrays[made] = arguments[made] == Py_None ? Py_NewRef(Py_None) : as_array(arguments[made]).release();
        if (arrays[made] == nullptr) break;
    }
    if (made < count) explain(state, made);
    // Not before all are arrays: to make one of an object runs the object's code, which may reach the others.
    for (Py_ssize_t i = 0; made == count && i < count; ++i) describe(arrays[i], inputs[i]);
    const std::shared_ptr<const Remembered> known = made == count ? look_up(self, arrays, inputs) : nullptr;
    if (known != nullptr) {
        d5_tensor* outputs = tensors_in_place + kInPlace;
        if (known->outputs.size() > kInPlace) {
            std::vector<d5_tensor> more_outputs(known->outputs.size());
            result = run(self, arrays, inputs, *known, more_outputs.data());
        } else {
            result = run(self, arrays, inputs, *known, outputs);
        }
    }
    for (Py_ssize_t i = 0; i < made; ++i) Py_DECREF(arrays[i]);
    return result;
}

PyObject* caller_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
    const char* name;
    PyObject *address, *attributes, *resolve;
    Py_ssize_t input_count;
    int always_tuple;
    if (!PyArg_ParseTuple(arguments, "OsnO!Op", &address, &name, &input_count, &PyTuple_Type, &attributes, &resolve,
                          &always_tuple)) {
        return nullptr;
    }
    void* function = PyLong_AsVoidPtr(address);
    if (function == nullptr) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the address of the function is 0");
        return nullptr;
    }
    std::unique_ptr<State> state(new State());
    state->function = reinterpret_cast<d5_function>(function);
    state->name = name;
    state->input_count = input_count;
    state->always_tuple = always_tuple != 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(attributes); ++i) {
        state->attributes.emplace_back();
        if (!read_attribute(PyTuple_GET_ITEM(attributes, i), state->attributes.back())) return nullptr;
    }
    for (const Attribute& attribute : state->attributes) state->attribute_views.push_back(view_of(attribute));
    Caller* self = reinterpret_cast<Caller*>(type->tp_alloc(type, 0));
    if (self == nullptr) return nullptr;
    self->call = caller_call;
    self->state = state.release();
    self->resolve = Py_NewRef(resolve);
    return reinterpret_cast<PyObject*>(self);
}

int caller_traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(reinterpret_cast<Caller*>(object)->resolve);
    return 0;
}

int caller_clear(PyObject* object) {
    Py_CLEAR(reinterpret_cast<Caller*>(object)->resolve);
    return 0;
}

void caller_dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    caller_clear(object);
    delete reinterpret_cast<Caller*>(object)->state;
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject caller_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "deep500_binding", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

// set_up(number of bfloat16, error class)
PyObject* set_up(PyObject*, PyObject* arguments) {
    PyObject* error;
    if (!PyArg_ParseTuple(arguments, "iO", &bfloat16_number, &error)) return nullptr;
    Py_XSETREF(operator_error, Py_NewRef(error));
    Py_RETURN_NONE;
}

PyMethodDef set_up_method = {"set_up", set_up, METH_VARARGS, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_deep500_binding(void) {
    import_array();
    caller_type.tp_name = "deep500_binding.Caller";
    caller_type.tp_doc = "A function of an operator's library, called with NumPy arrays.";
    caller_type.tp_basicsize = sizeof(Caller);
    caller_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
    caller_type.tp_vectorcall_offset = offsetof(Caller, call);
    caller_type.tp_call = PyVectorcall_Call;
    caller_type.tp_new = caller_new;
    caller_type.tp_dealloc = caller_dealloc;
    caller_type.tp_traverse = caller_traverse;
    caller_type.tp_clear = caller_clear;
    if (PyType_Ready(&caller_type) < 0) return nullptr;
    Owned module(PyModule_Create(&module_definition));
    if (!module) return nullptr;
    Owned function(PyCFunction_New(&set_up_method, nullptr));
    if (!function || PyModule_AddObjectRef(module.get(), "set_up", function.get()) < 0 ||
        PyModule_AddObjectRef(module.get(), "Caller", reinterpret_cast<PyObject*>(&caller_type)) < 0) {
        return nullptr;
    }
    return module.release();
}
