# frozen_string_literal: true

module Heddle
  module Options
    # Options that concern only HTTP/2 (RFC 9113).
    HTTP2 = [
      Option.new(name: :http2, unit: :word, default: :auto, choices: %i[auto tls off], example: "http2 :off",
                 text: "where HTTP/2 is offered: auto (on every address), tls (on tls addresses) or off",
                 reason: "Set it to off when the application needs rack.hijack, or clients have problems with HTTP/2",
                 details: "Over TLS, clients choose HTTP/2 by ALPN. On other addresses, a connection uses HTTP/2 " \
                          "if it begins with the connection preface of HTTP/2 (prior knowledge). Requests over " \
                          "HTTP/2 have no rack.hijack. See [HTTP/2](http2.md)."),
      Option.limit(:http2_websockets, :switch, false, nil,
                   text: "accept WebSockets over HTTP/2 (RFC 8441)",
                   reason: "Set it when Heddle::WebSocket or rack.upgrade serves all WebSockets of the application: " \
                           "libraries that use rack.hijack can't serve them over HTTP/2",
                   details: "See [WebSockets](websockets.md#over-http2)."),
      Option.limit(:http2_streams, :count, 100, 1,
                   text: "maximum number of concurrent requests on an HTTP/2 connection; further requests are reset " \
                         "with REFUSED_STREAM",
                   reason: "Raise it when a proxy sends the requests of many users over one connection",
                   details: "Heddle sends this limit to clients as SETTINGS_MAX_CONCURRENT_STREAMS. A request that " \
                            "the client has reset still counts until the application returns.",
                   maximum: 10_000),
      Option.limit(:http2_memory, :bytes, 16_777_216, 0,
                   text: "maximum memory for pending data of the HTTP/2 connections of one event loop; beyond it " \
                         "requests are reset with REFUSED_STREAM",
                   reason: "Raise it when busy clients get REFUSED_STREAM; lower it in a small container",
                   details: "Pending data are waiting requests and WebSocket frames; the first 176 KiB of each " \
                            "connection don't count. Above three quarters of this limit, Heddle restricts " \
                            "connections with more than 176 KiB. It writes their request bodies to files, and their " \
                            "clients must wait before they send more frames. The same limit applies to another sum: " \
                            "the unread parts of responses with Array bodies. While this sum exceeds the limit, no " \
                            "further request begins on connections with such a response. See " \
                            "[Limits](http2.md#limits).")
    ].freeze
  end
end
