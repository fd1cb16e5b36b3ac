/* The scanner's tests with the portable inner loops. */
#define AMP_NO_SIMD 1
#include "scan_test.c"
