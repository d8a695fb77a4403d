#include "net/quarantine.h"

#include "net/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int heddle_quarantine_join(heddle_sockets *sockets, VALUE object, heddle_learned *learned, int socket)
{
    int own = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return -errno;
    heddle_quarantine_leave(sockets);
    sockets->quarantine.object = object;
    sockets->quarantine.learned = learned;
    sockets->quarantine.socket = own;
    return 0;
}

void heddle_quarantine_leave(heddle_sockets *sockets)
{
    if (!sockets->quarantine.learned)
        return;
    close(sockets->quarantine.socket);
    sockets->quarantine.socket = -1;
    sockets->quarantine.learned = NULL;
}

/* Is there another worker for such requests, and does it still take any? */
static bool is_elsewhere(const heddle_sockets *sockets)
{
    const heddle_board *board = sockets->balance.board;
    uint32_t word = atomic_load_explicit(&sockets->quarantine.learned->header->quarantine, memory_order_relaxed);
    if (!word || !sockets->balance.slot || word > board->header->slot_count)
        return false;
    const heddle_board_slot *slot = &board->slots[word - 1];
    return slot != sockets->balance.slot && atomic_load_explicit(&slot->generation, memory_order_relaxed) &&
           atomic_load_explicit(&slot->accepting, memory_order_relaxed);
}

bool heddle_quarantine_takes(heddle_connection *connection, const char *method, size_t method_size, const char *target,
                             size_t target_size, const char *bytes, size_t size)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_quarantine *quarantine = &sockets->quarantine;
    char name[HEDDLE_LEARNED_NAME];
    if (!is_elsewhere(sockets))
        return false;
    heddle_endpoint_write(name, method, method_size, target, target_size);
    if (heddle_learned_score(quarantine->learned, name, heddle_now()) <= quarantine->learned->threshold)
        return false;
    if (heddle_connection_pass(connection, bytes, size, quarantine->socket) != 0)
        return false;
    quarantine->passed++;
    return true;
}
