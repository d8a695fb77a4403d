#include "http/status.h"

/* The IANA registry of November 2026. */
#define REGISTERED(X)                                                                                                 \
    X(100, "Continue")                                                                                                \
    X(101, "Switching Protocols")                                                                                     \
    X(102, "Processing")                                                                                              \
    X(103, "Early Hints")                                                                                             \
    X(200, "OK")                                                                                                      \
    X(201, "Created")                                                                                                 \
    X(202, "Accepted")                                                                                                \
    X(203, "Non-Authoritative Information")                                                                           \
    X(204, "No Content")                                                                                              \
    X(205, "Reset Content")                                                                                           \
    X(206, "Partial Content")                                                                                         \
    X(207, "Multi-Status")                                                                                            \
    X(208, "Already Reported")                                                                                        \
    X(226, "IM Used")                                                                                                 \
    X(300, "Multiple Choices")                                                                                        \
    X(301, "Moved Permanently")                                                                                       \
    X(302, "Found")                                                                                                   \
    X(303, "See Other")                                                                                               \
    X(304, "Not Modified")                                                                                            \
    X(305, "Use Proxy")                                                                                               \
    X(307, "Temporary Redirect")                                                                                      \
    X(308, "Permanent Redirect")                                                                                      \
    X(400, "Bad Request")                                                                                             \
    X(401, "Unauthorized")                                                                                            \
    X(402, "Payment Required")                                                                                        \
    X(403, "Forbidden")                                                                                               \
    X(404, "Not Found")                                                                                               \
    X(405, "Method Not Allowed")                                                                                      \
    X(406, "Not Acceptable")                                                                                          \
    X(407, "Proxy Authentication Required")                                                                           \
    X(408, "Request Timeout")                                                                                         \
    X(409, "Conflict")                                                                                                \
    X(410, "Gone")                                                                                                    \
    X(411, "Length Required")                                                                                         \
    X(412, "Precondition Failed")                                                                                     \
    X(413, "Content Too Large")                                                                                       \
    X(414, "URI Too Long")                                                                                            \
    X(415, "Unsupported Media Type")                                                                                  \
    X(416, "Range Not Satisfiable")                                                                                   \
    X(417, "Expectation Failed")                                                                                      \
    X(421, "Misdirected Request")                                                                                     \
    X(422, "Unprocessable Content")                                                                                   \
    X(423, "Locked")                                                                                                  \
    X(424, "Failed Dependency")                                                                                       \
    X(425, "Too Early")                                                                                               \
    X(426, "Upgrade Required")                                                                                        \
    X(428, "Precondition Required")                                                                                   \
    X(429, "Too Many Requests")                                                                                       \
    X(431, "Request Header Fields Too Large")                                                                         \
    X(451, "Unavailable For Legal Reasons")                                                                           \
    X(500, "Internal Server Error")                                                                                   \
    X(501, "Not Implemented")                                                                                         \
    X(502, "Bad Gateway")                                                                                             \
    X(503, "Service Unavailable")                                                                                     \
    X(504, "Gateway Timeout")                                                                                         \
    X(505, "HTTP Version Not Supported")                                                                              \
    X(506, "Variant Also Negotiates")                                                                                 \
    X(507, "Insufficient Storage")                                                                                    \
    X(508, "Loop Detected")                                                                                           \
    X(511, "Network Authentication Required")

enum {
    LOWEST = 100,
    HIGHEST = 511,
};

/* The index of a status in `lines`, or 0. */
enum {
    UNREGISTERED,
#define PLACE(code, phrase) PLACE_##code,
    REGISTERED(PLACE)
#undef PLACE
};

static const uint8_t places[HIGHEST - LOWEST + 1] = {
#define PLACE(code, phrase) [code - LOWEST] = PLACE_##code,
    REGISTERED(PLACE)
#undef PLACE
};

static const struct {
    const char *line, *phrase;
    size_t size; /* bytes of `line` */
} lines[] = {
    [UNREGISTERED] = {"", "", 0},
#define LINE(code, phrase)                                                                                             \
    [PLACE_##code] = {"HTTP/1.1 " #code " " phrase "\r\n", phrase, sizeof("HTTP/1.1 " #code " " phrase "\r\n") - 1},
    REGISTERED(LINE)
#undef LINE
};

static unsigned find_slot(int status)
{
    return status >= LOWEST && status <= HIGHEST ? places[status - LOWEST] : UNREGISTERED;
}

const char *heddle_status_line(int status, size_t *size, char room[HEDDLE_STATUS_LINE_ROOM])
{
    unsigned place = find_slot(status);
    if (place != UNREGISTERED) {
        *size = lines[place].size;
        return lines[place].line;
    }
    static const char pattern[HEDDLE_STATUS_LINE_ROOM] = "HTTP/1.1 000 \r\n";
    memcpy(room, pattern, sizeof(pattern));
    room[9] += (char)(status / 100 % 10);
    room[10] += (char)(status / 10 % 10);
    room[11] += (char)(status % 10);
    *size = strlen(pattern);
    return room;
}

const char *heddle_status_phrase(int status)
{
    return lines[find_slot(status)].phrase;
}
