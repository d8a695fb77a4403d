#ifndef HEDDLE_HTTP_REFUSAL_H
#define HEDDLE_HTTP_REFUSAL_H

/* Why a message is refused: the status of the answer, and one sentence for a person. No Ruby here. */

typedef struct {
    int status;
    char reason[112];
} heddle_refusal;

/* Answers -1, so that a parser can `return heddle_refuse(…)`. */
int heddle_refuse(heddle_refusal *refusal, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
