#include "maxpool2d.h"

D500_OPERATOR(maxpool2d, native_ops::MaxPool2d)
