/*
 * The writer: the thread that opens, writes and closes the files of bodies. Each process has one, which starts when it
 * is first needed.
 */

#include "http/body/spool.h"
#include "selector/list.h"
#include "selector/native_thread.h"

static struct {
    pthread_mutex_t lock;
    /* Initialized by start_thread: the copy in a forked child counts the parent's thread as a waiter. */
    pthread_cond_t work;
    heddle_body_job *first, *last;
    heddle_body_spool *all;
    bool running;
    bool idle; /* the thread waits for a job, and has not been signaled yet */
    bool has_fork_handlers;
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- files; on the writer's thread -------------------------------------------------------------------------------- */

/* Returns 0 or an errno. */
static int write_buffer(heddle_body_spool *spool)
{
    if (spool->fd < 0) {
        int fd = heddle_body_file_open(spool->folder);
        if (fd < 0)
            return -fd;
        spool->fd = fd;
        spool->awaits_file = false;
    }
    size_t done = 0;
    while (done < spool->used) {
        ssize_t bytes = pwrite(spool->fd, spool->buffer + done, spool->used - done, (off_t)(spool->size + done));
        int error = bytes == 0 ? EIO : bytes < 0 ? errno : 0;
        if (error && error != EINTR)
            return error;
        if (bytes > 0)
            done += (size_t)bytes;
    }
    spool->size += done;
    spool->used = 0;
    return 0;
}

static void close_job_file(heddle_body_job *job)
{
    heddle_body_file_close(job->fd, job->address);
    free(job);
}

/* Called with the lock held. Releases the lock while it writes. */
static void write_spool(heddle_body_spool *spool)
{
    spool->state = HEDDLE_SPOOL_WRITING;
    pthread_mutex_unlock(&writer.lock);
    int error = write_buffer(spool);
    pthread_mutex_lock(&writer.lock);
    spool->error = error;
    if (spool->state == HEDDLE_SPOOL_ENDING) {
        pthread_mutex_unlock(&writer.lock);
        heddle_body_spool_free(spool);
        pthread_mutex_lock(&writer.lock);
        return;
    }
    spool->state = HEDDLE_SPOOL_WRITTEN;
    /*
     * Posts under the lock: an owner may free the loop as soon as it has withdrawn the spool, and withdrawing takes the
     * lock.
     */
    spool->owner.post(spool->owner.loop, &spool->message);
}

static void *run_writer(void *unused)
{
#ifdef __linux__
    pthread_setname_np(pthread_self(), "heddle bodies");
#endif
    pthread_mutex_lock(&writer.lock);
    for (;;) {
        heddle_body_job *job = writer.first;
        if (!job) {
            writer.idle = true;
            pthread_cond_wait(&writer.work, &writer.lock);
            writer.idle = false;
            continue;
        }
        HEDDLE_QUEUE_REMOVE(&writer, job);
        if (job->spool) {
            write_spool(job->spool);
        } else {
            pthread_mutex_unlock(&writer.lock);
            close_job_file(job);
            pthread_mutex_lock(&writer.lock);
        }
    }
    return NULL;
}

/* -- the queue ---------------------------------------------------------------------------------------------------- */

/* Called with the lock held. */
static bool start_thread(void)
{
    if (writer.running)
        return true;
    pthread_t thread;
    heddle_condition_init(&writer.work);
    writer.running = heddle_native_thread_start(&thread, run_writer) == 0;
    if (writer.running)
        pthread_detach(thread);
    return writer.running;
}

/* Returns false if the writer's thread could not be started. */
static bool enqueue_job(heddle_body_job *job)
{
    bool idle = false;
    pthread_mutex_lock(&writer.lock);
    bool started = start_thread();
    if (started) {
        if (job->spool)
            job->spool->state = HEDDLE_SPOOL_QUEUED;
        HEDDLE_QUEUE_APPEND(&writer, job);
        idle = writer.idle;
        writer.idle = false; /* one signal is enough */
    }
    pthread_mutex_unlock(&writer.lock);
    if (idle) /* signals after the unlock: a thread that wakes up while the lock is held would block at once */
        pthread_cond_signal(&writer.work);
    return started;
}

int heddle_body_writer_submit(heddle_body_spool *spool)
{
    return enqueue_job(&spool->job) ? 0 : -EAGAIN;
}

void heddle_body_writer_close(int fd, heddle_body_disk_count counted)
{
    heddle_body_disk_release(counted);
    if (fd < 0)
        return;
    heddle_body_job *job = malloc(sizeof(*job));
    if (job)
        *job = (heddle_body_job){.fd = fd, .address = counted.address};
    if (job && enqueue_job(job))
        return;
    free(job);
    heddle_body_file_close(fd, counted.address);
}

bool heddle_body_writer_withdraw(heddle_body_spool *spool)
{
    int fd = -1;
    heddle_body_disk_count counted = {0};
    pthread_mutex_lock(&writer.lock);
    heddle_spool_state state = spool->state;
    bool ours = state != HEDDLE_SPOOL_WRITING && state != HEDDLE_SPOOL_WRITTEN;
    if (state == HEDDLE_SPOOL_QUEUED)
        HEDDLE_QUEUE_REMOVE(&writer, &spool->job);
    if (state == HEDDLE_SPOOL_WRITTEN) {
        /* Closes the file now: a loop that has ended would never receive the message. */
        fd = spool->fd;
        counted = spool->counted;
        spool->fd = -1;
        spool->counted.bytes = 0;
    }
    if (!ours)
        spool->state = HEDDLE_SPOOL_ENDING;
    pthread_mutex_unlock(&writer.lock);
    if (state == HEDDLE_SPOOL_WRITTEN)
        heddle_body_writer_close(fd, counted);
    return ours;
}

void heddle_body_writer_deliver(heddle_loop_message *message)
{
    heddle_body_spool *spool = (heddle_body_spool *)((char *)message - offsetof(heddle_body_spool, message));
    pthread_mutex_lock(&writer.lock);
    bool ending = spool->state == HEDDLE_SPOOL_ENDING;
    if (!ending)
        spool->state = HEDDLE_SPOOL_FILLING;
    pthread_mutex_unlock(&writer.lock);
    if (ending)
        heddle_body_spool_free(spool);
    else
        spool->owner.written(spool->owner.owner, spool->error);
}

/* -- forks -------------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&writer.lock);
    heddle_body_disk_before_fork();
}

static void after_fork_in_parent(void)
{
    heddle_body_disk_after_fork(false);
    pthread_mutex_unlock(&writer.lock);
}

/*
 * A forked child begins without a writer. It closes the inherited files, which would otherwise use disk space until the
 * child ends. Only files that the application uses stay open, as other open files do after a fork.
 */
static void after_fork_in_child(void)
{
    unsigned inherited = 0;
    for (heddle_body_spool *spool = writer.all; spool; spool = spool->next) {
        spool->inherited = true;
        spool->awaits_file = false;
        spool->state = HEDDLE_SPOOL_FILLING;
        spool->counted = (heddle_body_disk_count){0};
        if (!spool->kept && spool->fd >= 0) {
            close(spool->fd);
            spool->fd = -1;
        }
        inherited += spool->fd >= 0;
    }
    for (heddle_body_job *job = writer.first; job; job = job->next) {
        if (!job->spool)
            close(job->fd); /* the record leaks: calling free is not safe here */
    }
    heddle_body_disk_after_fork(true);
    heddle_body_files_after_fork(inherited);
    writer.first = writer.last = NULL;
    writer.running = writer.idle = false;
    pthread_mutex_init(&writer.lock, NULL);
}

void heddle_body_writer_add(heddle_body_spool *spool)
{
    pthread_mutex_lock(&writer.lock);
    if (!writer.has_fork_handlers)
        writer.has_fork_handlers = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    HEDDLE_LIST_ADD(writer.all, spool);
    pthread_mutex_unlock(&writer.lock);
}

void heddle_body_writer_remove(heddle_body_spool *spool)
{
    pthread_mutex_lock(&writer.lock);
    HEDDLE_LIST_REMOVE(writer.all, spool);
    pthread_mutex_unlock(&writer.lock);
}
