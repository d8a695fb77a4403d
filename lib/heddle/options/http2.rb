# frozen_string_literal: true

module Heddle
  module Options
    # Options of HTTP/2 (RFC 9113), where HTTP/1.1 has no such limit.
    HTTP2 = [
      Option.new(name: :http2, unit: :word, default: :auto, choices: %i[auto tls off], example: "http2 :off",
                 text: "where HTTP/2 is offered: auto (on every address), tls (on tls addresses) or off",
                 reason: "Set it to off when the application needs rack.hijack, or clients have problems with HTTP/2",
                 details: "Over TLS, clients choose it by ALPN. On other addresses, a connection that begins with " \
                          "the preface of HTTP/2 uses it (prior knowledge). Requests over HTTP/2 have no " \
                          "rack.hijack. See [HTTP/2](http2.md)."),
      Option.limit(:http2_websockets, :switch, false, nil,
                   text: "accept WebSockets over HTTP/2 (RFC 8441)",
                   reason: "Set it when Heddle::WebSocket or rack.upgrade serves all WebSockets of the application: " \
                           "libraries that use rack.hijack can't serve them over HTTP/2",
                   details: "See [WebSockets](websockets.md#over-http2)."),
      Option.limit(:http2_streams, :count, 100, 1,
                   text: "maximum number of concurrent requests on an HTTP/2 connection; others get REFUSED_STREAM",
                   reason: "Raise it when a proxy sends the requests of many users over one connection",
                   details: "Sent to clients as SETTINGS_MAX_CONCURRENT_STREAMS. A request that the client has reset " \
                            "counts until the application has returned.",
                   maximum: 10_000),
      Option.limit(:http2_memory, :bytes, 16_777_216, 0,
                   text: "maximum memory of each loop for pending data of HTTP/2 connections; beyond it requests get " \
                         "REFUSED_STREAM",
                   reason: "Raise it when busy clients get REFUSED_STREAM; lower it in a small container",
                   details: "Waiting requests and WebSocket frames count, except for the first 176 KiB of each " \
                            "connection. Above three quarters of this limit, request bodies are written to files, " \
                            "and clients must wait before they send more frames. While complete responses of more " \
                            "than this size wait for slow clients, further requests of these clients wait, too. See " \
                            "[Limits](http2.md#limits).")
    ].freeze
  end
end
