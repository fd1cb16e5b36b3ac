/*
 * For C++ as well: the functions are C functions, and what C calls atomic is plain memory that only
 * the library changes.
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
