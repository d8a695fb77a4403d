#pragma once

/*
 * Moves OpenSSL's errors between threads. OpenSSL keeps the errors of a call in a queue of the thread that makes the
 * call. After an offloaded call, the errors are moved to the loop's thread, where the fiber looks for them. Works with
 * OpenSSL 3 (ERR_get_error_all(3)). Uses no Ruby.
 */

typedef struct heddle_openssl_errors heddle_openssl_errors;

/*
 * Returns a function that removes and returns the errors of the thread on which it is called. Returns NULL if OpenSSL 3
 * is not loaded.
 */
heddle_openssl_errors *(*heddle_openssl_errors_taker(void))(void);

/* Adds the errors to the calling thread's queue and frees them. `errors` may be NULL. */
void heddle_openssl_errors_put(heddle_openssl_errors *errors);
void heddle_openssl_errors_free(heddle_openssl_errors *errors);
