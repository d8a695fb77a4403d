# frozen_string_literal: true

module Heddle
  module Options
    # Options of requests: their heads, time limits, cancellation and interim responses.
    REQUESTS = [
      Option.new(name: :request_timeout, unit: :seconds, default: 0, range: 0..86_400, example: "request_timeout 20",
                 text: "respond with 503 if the application has not begun its response after this time; 0 for no limit",
                 reason: "Set it when the proxy in front, or the user, gives up after that time anyway",
                 details: "The call in which the application waits raises Heddle::Cancelled; ensure clauses run. The " \
                          "log names the line of this call, and the worker continues. Code that computes is " \
                          "interrupted when it next waits. The option is allowed only in the modes fiber and ractor."),
      Option.new(name: :cancel_on_disconnect, unit: :word, default: :off, choices: %i[off safe all],
                 example: "cancel_on_disconnect :safe",
                 text: "cancel requests whose client has disconnected: off, safe (GET, HEAD, OPTIONS, TRACE) or all",
                 reason: "Set it when abandoned requests keep running expensive queries",
                 details: "The call in which the application waits raises Heddle::Cancelled, as with " \
                          "request_timeout, so a pending query or upstream request ends at once. Code inside of " \
                          "Heddle.shield { } is not cancelled. A client that has only closed its sending side counts " \
                          "as disconnected, even if it still reads. The option is allowed only in the modes fiber " \
                          "and ractor. See [databases](databases.md#disconnected-clients)."),
      Option.new(name: :early_hints, unit: :word, default: :off, choices: %i[off on always],
                 example: "early_hints :on",
                 text: "send the links that an application passes to rack.early_hints as 103 responses: off, on " \
                       "(except to clients behind a proxy) or always",
                 reason: "Set it when the application knows which styles and scripts a page needs before the page is " \
                         "rendered",
                 details: "A request with Via, Forwarded, X-Forwarded-*, X-Real-IP or Client-IP counts as sent by a " \
                          "proxy. Some proxies take 103 for the final response (nginx before 1.29). With `on`, " \
                          "requests from proxies have no rack.early_hints. With `always`, they have it: use `always` " \
                          "only if the proxy forwards 103 (HAProxy and Thruster do). Heddle collects hints until the " \
                          "request waits or the event loop's tick ends, and sends them as one 103 response. HTTP/1.0 " \
                          "clients get none."),
      Option.limit(:header_limit, :bytes, 32_768, 1_024,
                   text: "maximum total size of a request's header lines and trailers; a larger request gets 431",
                   reason: "Raise it when clients send large cookies or tokens",
                   details: "Two more limits are fixed: a request line has at most 16 KiB, and a request at most 100 " \
                            "header lines."),
      Option.limit(:underscore_headers, :switch, false, nil,
                   text: "accept header names with underscores, although clients can forge other headers with them",
                   reason: "Set it when a client that you can't change sends such names"),
      Option.limit(:head_timeout, :seconds, 10, 0.001,
                   text: "maximum time to receive a request head, and to complete a TLS handshake; a slower client " \
                         "gets 408, or its connection is closed",
                   reason: "Lower it when slow clients occupy many connections; raise it for very slow networks")
    ].freeze
  end
end
