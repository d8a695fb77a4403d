#include "http/h2/client/client.h"
#include "http/http.h"

#include "http/body/spool_ruby.h"
#include "http/h1/server/exchange.h"
#include "http/h2/server/server.h"
#include "http/request_label.h"
#include "http/push/event_text.h"
#include "http/push/session.h"

/*
 * call-seq: Heddle::Native.request_label("GET /users/7?page=2") -> "GET /users/:id"
 *
 * Returns the label of a request, see request_label.h.
 */
static VALUE request_label(VALUE self, VALUE request)
{
    char label[HEDDLE_REQUEST_LABEL];
    StringValue(request);
    const char *text = RSTRING_PTR(request);
    size_t size = (size_t)RSTRING_LEN(request);
    const char *space = memchr(text, ' ', size);
    size_t method = space ? (size_t)(space - text) : size, target = space ? method + 1 : size;
    heddle_request_label_write(label, text, method, text + target, size - target);
    return rb_utf8_str_new_cstr(label);
}

void Init_heddle_http(VALUE heddle)
{
    heddle_http_register(HEDDLE_HTTP_1, &heddle_h1_http_protocol);
    heddle_http_register(HEDDLE_HTTP_2, &heddle_h2_http_protocol);
    heddle_http_register(HEDDLE_WEBSOCKETS, &heddle_push_http_protocol);
    heddle_http_register(HEDDLE_EVENT_STREAMS, &heddle_events_http_protocol);
    VALUE http = rb_define_module_under(heddle, "HTTP");
    VALUE h1 = rb_define_module_under(http, "H1");
    Init_heddle_http_heads(h1);
    Init_heddle_http_chunked(h1);
    Init_heddle_http_writer(http);
    Init_heddle_response_reader(h1);
    Init_heddle_engine(http);
    Init_heddle_exchange(http);
    VALUE h2 = rb_define_module_under(http, "H2");
    Init_heddle_h1_exchange(h1);
    Init_heddle_h2_exchange(h2);
    Init_heddle_events();
    Init_heddle_h2_client(h2);
    Init_heddle_push(http);
    Init_heddle_spooled_body(http);
    Init_heddle_access_log(http);
    rb_define_singleton_method(rb_define_module_under(heddle, "Native"), "request_label", request_label, 1);
}
