# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of HTTP/2 (RFC 9113), where HTTP/1.1 has no such limit.
    HTTP2 = [
      Option.new(name: :http2, unit: :word, default: :auto, choices: %i[auto tls off], example: "http2 :off",
                 details: "Over TLS, clients choose it by ALPN; on other addresses, a connection that begins with " \
                          "the preface of HTTP/2 speaks it (prior knowledge). Requests over HTTP/2 have no " \
                          "rack.hijack. See http2.md.",
                 text: "where HTTP/2 is spoken: auto (on every address), tls (on tls addresses alone) or off"),
      Option.limit(:http2_websockets, :switch, false, nil,
                   "whether WebSockets may come over HTTP/2 (RFC 8441); for applications whose WebSockets are all " \
                   "served by Heddle::WebSocket or rack.upgrade, see websockets.md"),
      Option.limit(:http2_streams, :count, 100, 1,
                   "requests of one HTTP/2 connection at once (SETTINGS_MAX_CONCURRENT_STREAMS), of which a reset " \
                   "one counts until its application has returned; more are reset with REFUSED_STREAM", 10_000),
      Option.limit(:http2_resets, :count, 100, 1,
                   "streams of an HTTP/2 connection that either side ends early, and as many that are rejected " \
                   "beyond http2_streams: so many at once, and a third of that a second. More end the connection " \
                   "with ENHANCE_YOUR_CALM", 1_000_000),
      Option.limit(:http2_control_frames, :count, 1_000, 10,
                   "PING, SETTINGS, empty and unknown frames of an HTTP/2 connection: so many at once, and a third " \
                   "of that a second; more end the connection with ENHANCE_YOUR_CALM", 1_000_000),
      Option.limit(:http2_control_answers, :count, 100, 1,
                   "answers to PING and SETTINGS that an HTTP/2 client has not fetched; more end the connection with " \
                   "ENHANCE_YOUR_CALM", 10_000),
      Option.limit(:http2_overhead, :bytes, 1_048_576, 1_024,
                   "bytes by which an eighth of all that an HTTP/2 client has sent may exceed its DATA, HEADERS and " \
                   "CONTINUATION frames; more end the connection with ENHANCE_YOUR_CALM", 1_073_741_824),
      Option.limit(:http2_updates, :count, 100, 10,
                   "PRIORITY frames, and WINDOW_UPDATE frames, of an HTTP/2 connection, and 10 more of each for each " \
                   "request (4 more WINDOW_UPDATE frames for each DATA frame sent). More end the connection with " \
                   "ENHANCE_YOUR_CALM", 1_000_000),
      Option.limit(:http2_continuations, :count, 4, 0,
                   "CONTINUATION frames of an HTTP/2 request; more end the connection with ENHANCE_YOUR_CALM", 1_000),
      Option.limit(:http2_settings, :count, 32, 6,
                   "settings of one SETTINGS frame; more end the connection with ENHANCE_YOUR_CALM", 2_000),
      Option.limit(:http2_cookies, :count, 50, 0,
                   "cookie fields of a request over HTTP/2 that header_count does not count, as browsers send each " \
                   "cookie in one; more are answered with 431", 10_000),
      Option.limit(:http2_body_window, :bytes, 1_048_576, 65_535,
                   "bytes of all request bodies of an HTTP/2 connection that may be under way, and that are kept in " \
                   "memory; further ones wait at the client, or go to files", 1_073_741_824),
      Option.limit(:http2_response_buffer, :bytes, 262_144, 16_384,
                   "bytes of a response that are kept for an HTTP/2 client that does not take them; then the " \
                   "application waits", 1_073_741_824),
      Option.limit(:http2_connection_buffer, :bytes, 1_048_576, 16_384,
                   "the same for all responses of a connection, and for its WebSockets and event streams. When more " \
                   "has waited for a second, those with more than an equal share are too slow for their next " \
                   "message. Then a WebSocket is closed with 1008, and an event stream does what its application has " \
                   "chosen", 1_073_741_824),
      Option.limit(:http2_write_rate, :rate, 1_000, 0,
                   "the least rate at which an HTTP/2 client takes a response, over write_timeout; a slower one is " \
                   "reset with CANCEL", 1_000_000_000),
      Option.limit(:http2_memory, :bytes, 16_777_216, 0,
                   "bytes of requests, and of WebSockets' frames, that wait on HTTP/2 connections, in each loop, " \
                   "beyond what a connection over HTTP/1.1 could have (112 KiB and body_buffer each). At three " \
                   "quarters of it bodies go to files and frames wait at the client; beyond it further requests " \
                   "are reset with REFUSED_STREAM. While complete responses of more than as many bytes wait for slow " \
                   "clients, a connection with one of them has no further request begun")
    ].freeze
  end
end
