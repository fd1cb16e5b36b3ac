/*
 * Support for C++: the functions have C linkage, and _Atomic members are plain members there; only
 * the library changes them.
 */
#ifndef AMP_BASE_API_H
#define AMP_BASE_API_H

#ifdef __cplusplus
#define AMP_API_BEGIN extern "C" {
#define AMP_API_END   }
#define AMP_ATOMIC
#else
#define AMP_API_BEGIN
#define AMP_API_END
#define AMP_ATOMIC _Atomic
#endif

#endif
