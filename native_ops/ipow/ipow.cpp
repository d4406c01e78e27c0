#include "ipow.h"

D500_OPERATOR(ipow, native_ops::IPow)
