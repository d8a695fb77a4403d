# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of a request's head, its time and its interim responses.
    REQUESTS = [
      Option.new(name: :request_timeout, unit: :seconds, default: 0, range: 0..86_400, example: "request_timeout 20",
                 text: "how long a request may take until its answer begins; then it is 503. 0: no limit",
                 details: "The call for which the application waits then raises Heddle::Cancelled; ensure clauses " \
                          "may clean up. The log says where it was, the worker goes on. Code that computes is not " \
                          "interrupted before it waits. In the modes fiber and ractor."),
      Option.new(name: :cancel_on_disconnect, unit: :word, default: :off, choices: %i[off safe all],
                 example: "cancel_on_disconnect :safe",
                 text: "which requests are cancelled when their client leaves: none (off), those whose method " \
                       "changes nothing (safe: GET, HEAD, OPTIONS, TRACE) or all",
                 details: "The call for which the application waits then raises Heddle::Cancelled, as with " \
                          "request_timeout: its query or its upstream request ends at once. Heddle.shield { } " \
                          "keeps a part from that. A client that has only ended its side of the connection and " \
                          "still reads counts as one that has left. In the modes fiber and ractor. See " \
                          "[databases](databases.md#disconnected-clients)."),
      Option.new(name: :early_hints, unit: :word, default: :off, choices: %i[off on always],
                 example: "early_hints :on",
                 details: "A request that carries Via, Forwarded, X-Forwarded-* or X-Real-IP comes through a " \
                          "proxy, which may take a 103 for the response: nginx before 1.29 does. With on such " \
                          "requests get no rack.early_hints, with always they do: the proxy must pass 103 on " \
                          "(HAProxy, Thruster). Hints are collected until the request waits or the loop's tick " \
                          "ends, and sent as one 103; HTTP/1.0 gets none.",
                 text: "whether rack.early_hints sends 103 Early Hints: off, on (to clients that come without a " \
                       "proxy) or always"),
      Option.limit(:request_line_limit, :bytes, 16_384, 8_192,
                   "length of a request line; a longer one is answered with 414"),
      Option.limit(:header_limit, :bytes, 32_768, 1_024,
                   "size of all header lines of a request, trailers included; more is answered with 431"),
      Option.limit(:header_count, :count, 100, 1,
                   "number of header lines of a request, trailers included; more are answered with 431", 65_535),
      Option.limit(:underscore_headers, :switch, false, nil,
                   "whether header names with an underscore are kept; a client can forge others' names with them"),
      Option.limit(:head_timeout, :seconds, 10, 0.001,
                   "time for a whole request head, from its first byte; then the answer is 408")
    ].freeze
  end
end
