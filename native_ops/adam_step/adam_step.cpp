#include "adam_step.h"

D500_OPERATOR(adam_step, native_ops::AdamStep)
