#ifndef HEDDLE_OFFLOAD_JOB_QUEUE_H
#define HEDDLE_OFFLOAD_JOB_QUEUE_H

/* A queue of jobs, first in, first out; any job can be removed. */

#include "offload/job.h"

#include <stddef.h>

typedef struct {
    heddle_job *head, *tail;
    unsigned count;
} heddle_job_queue;

static inline void heddle_job_queue_append(heddle_job_queue *queue, heddle_job *job)
{
    job->next = NULL;
    job->previous = queue->tail;
    if (queue->tail)
        queue->tail->next = job;
    else
        queue->head = job;
    queue->tail = job;
    queue->count++;
}

static inline void heddle_job_queue_remove(heddle_job_queue *queue, heddle_job *job)
{
    if (job->previous)
        job->previous->next = job->next;
    else
        queue->head = job->next;
    if (job->next)
        job->next->previous = job->previous;
    else
        queue->tail = job->previous;
    queue->count--;
}

#endif
