#ifndef HEDDLE_HTTP_REJECTION_H
#define HEDDLE_HTTP_REJECTION_H

/* Why a message is refused: the status of the answer, and one sentence for a person. No Ruby here. */

typedef struct {
    int status;
    char reason[112];
} heddle_rejection;

/* Answers -1, so that a parser can `return heddle_reject(…)`. */
int heddle_reject(heddle_rejection *rejection, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
