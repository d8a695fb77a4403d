#include "http/endpoint_accounts.h"

static heddle_endpoint *find_endpoint(heddle_endpoints *endpoints, uint32_t hash)
{
    for (unsigned i = 0; i < endpoints->count; i++) {
        if (endpoints->list[i].hash == hash)
            return &endpoints->list[i];
    }
    return NULL;
}

void heddle_endpoints_count(heddle_endpoints *endpoints, const char *method, size_t method_size, const char *target,
                            size_t target_size, const int64_t parts[HEDDLE_SPENT_PARTS], int64_t other)
{
    uint32_t hash = heddle_request_label_hash(method, method_size, target, target_size);
    heddle_endpoint *endpoint = find_endpoint(endpoints, hash);
    if (!endpoint && endpoints->count < HEDDLE_ENDPOINTS) {
        endpoint = &endpoints->list[endpoints->count++];
        endpoint->hash = hash;
        if (endpoints->count < HEDDLE_ENDPOINTS)
            heddle_request_label_write(endpoint->label, method, method_size, target, target_size);
        else
            strcpy(endpoint->label, "other");
    }
    if (!endpoint)
        endpoint = &endpoints->list[HEDDLE_ENDPOINTS - 1];
    for (int part = 0; part < HEDDLE_SPENT_PARTS; part++)
        endpoint->spent[part] += (uint64_t)parts[part];
    endpoint->spent[HEDDLE_SPENT_PARTS] += (uint64_t)other;
}
