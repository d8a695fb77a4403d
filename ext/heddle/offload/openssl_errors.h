#ifndef HEDDLE_OFFLOAD_OPENSSL_ERRORS_H
#define HEDDLE_OFFLOAD_OPENSSL_ERRORS_H

/*
 * OpenSSL keeps the errors of a call in a queue of the calling thread. Errors that an offloaded call leaves there are
 * moved to the thread of its loop, where the caller looks for them. OpenSSL 3 (ERR_get_error_all(3)); nothing here
 * needs Ruby.
 */

typedef struct heddle_openssl_errors heddle_openssl_errors;

/* A function that takes the calling thread's errors, for a call that begins now; NULL where no OpenSSL is loaded. */
heddle_openssl_errors *(*heddle_openssl_errors_taker(void))(void);

/* Adds them to the calling thread's queue and frees them; NULL: there are none. */
void heddle_openssl_errors_put(heddle_openssl_errors *errors);
void heddle_openssl_errors_free(heddle_openssl_errors *errors);

#endif
