#pragma once

#include <ruby.h>

void Init_heddle_http(VALUE heddle);
void Init_heddle_http_writer(VALUE http);
void Init_heddle_http_heads(VALUE h1);
void Init_heddle_http_chunked(VALUE h1);
void Init_heddle_response_reader(VALUE h1);
