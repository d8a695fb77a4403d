# frozen_string_literal: true

module Heddle
  module Options
    # Options of a request's head, its time and its interim responses.
    REQUESTS = [
      Option.new(name: :request_timeout, unit: :seconds, default: 0, range: 0..86_400, example: "request_timeout 20",
                 text: "respond with 503 if the application's response has not begun after this time; 0 for no limit",
                 reason: "Set it when the proxy in front, or the user, gives up after that time anyway",
                 details: "The call in which the application waits raises Heddle::Cancelled; ensure clauses run. The " \
                          "log names the line, and the worker continues. Code that computes is interrupted at its " \
                          "next wait. The option works in the modes fiber and ractor only."),
      Option.new(name: :cancel_on_disconnect, unit: :word, default: :off, choices: %i[off safe all],
                 example: "cancel_on_disconnect :safe",
                 text: "cancel requests whose client has disconnected: off, safe (GET, HEAD, OPTIONS, TRACE) or all",
                 reason: "Set it when abandoned requests keep running expensive queries",
                 details: "The call in which the application waits raises Heddle::Cancelled, as with " \
                          "request_timeout: its query or its upstream request ends at once. Heddle.shield { } " \
                          "protects a part of the code from that. A client that has only ended its side of the " \
                          "connection and still reads counts as disconnected. The option works in the modes fiber " \
                          "and ractor only. See [databases](databases.md#disconnected-clients)."),
      Option.new(name: :early_hints, unit: :word, default: :off, choices: %i[off on always],
                 example: "early_hints :on",
                 text: "let rack.early_hints send 103: off, on (only to clients without a proxy) or always",
                 reason: "Set it when the application knows a page's styles and scripts before the page",
                 details: "A request with Via, Forwarded, X-Forwarded-* or X-Real-IP comes through a proxy, and a " \
                          "proxy may take 103 for the response: nginx before 1.29 does. With on, such requests have " \
                          "no rack.early_hints. With always they have it, and the proxy must forward 103 (HAProxy " \
                          "and Thruster do). Hints are collected until the request waits or the loop's tick ends, " \
                          "and sent as one 103; HTTP/1.0 gets none."),
      Option.limit(:header_limit, :bytes, 32_768, 1_024,
                   text: "maximum size of the header lines of a request, trailers included; a larger one gets 431",
                   reason: "Raise it when clients send large cookies or tokens",
                   details: "A request line may have 16 KiB, and a request 100 header lines."),
      Option.limit(:underscore_headers, :switch, false, nil,
                   text: "accept header names with an underscore, though clients can use them to forge other headers",
                   reason: "Set it when a client that you can't change sends such names"),
      Option.limit(:head_timeout, :seconds, 10, 0.001,
                   text: "maximum time for a request head, and for the TLS handshake before it; then the client gets " \
                         "408, or its connection is closed",
                   reason: "Lower it when slow clients occupy many connections; raise it for very slow networks")
    ].freeze
  end
end
