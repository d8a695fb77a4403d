#pragma once

/*
 * OpenSSL keeps the errors of a call in a queue of the calling thread. The errors of an offloaded call are moved to the
 * thread of its loop, where its caller looks for them. Works with OpenSSL 3 (ERR_get_error_all(3)). Uses no Ruby.
 */

typedef struct heddle_openssl_errors heddle_openssl_errors;

/*
 * Returns a function that takes the calling thread's errors, for a call that begins now. NULL if no OpenSSL is loaded.
 */
heddle_openssl_errors *(*heddle_openssl_errors_taker(void))(void);

/* Adds the errors to the calling thread's queue and frees them; NULL: none. */
void heddle_openssl_errors_put(heddle_openssl_errors *errors);
void heddle_openssl_errors_free(heddle_openssl_errors *errors);
