#include "http/http.h"

#include "http/exchange_ruby.h"

void Init_heddle_http(VALUE heddle)
{
    VALUE http = rb_define_module_under(heddle, "HTTP");
    VALUE h1 = rb_define_module_under(http, "H1");
    Init_heddle_http_parser(h1);
    Init_heddle_http_writer(h1);
    Init_heddle_engine(h1);
    Init_heddle_exchange(h1);
    Init_heddle_access_line(http);
}
