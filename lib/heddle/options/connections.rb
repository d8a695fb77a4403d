# frozen_string_literal: true

module Heddle
  module Options
    # Limits on the number of connections, and on how long a connection may be idle.
    CONNECTIONS = [
      Option.new(name: :max_connections, unit: :count, default: 0, range: 0..10_000_000, advanced: true,
                 default_words: "0", example: "max_connections 5_000",
                 text: "maximum number of connections in each worker; 0 to derive it from memory and file descriptors",
                 reason: "Raise it when most connections are idle, such as WebSockets",
                 details: "With 0, each worker accepts as many connections as fit into its share of memory_limit: " \
                          "about 5,300 with one worker in a container of 1 GiB. Each connection counts as 176 KiB, " \
                          "its maximum before a request runs; an idle connection uses much less. From the share, " \
                          "Heddle subtracts http2_memory once. Of the file descriptors, it reserves 64 for the " \
                          "application, and a quarter for request bodies in files. While new connections wait at the " \
                          "limit, the server closes open ones. It first closes connections that have been idle for " \
                          "at least half a second, the longest idle first. Then it closes connections whose client " \
                          "pauses in the middle of a request or a response, and finally WebSockets and event " \
                          "streams. One client address outside of trusted_proxies may have at most a quarter of the " \
                          "connections, or 16 if that is more. The log reports when max_connections or the limit of " \
                          "an address is reached. See [Connections](sockets.md#connections-at-the-limit)."),
      Option.limit(:idle_timeout, :seconds, 75, 0.001,
                   text: "close a connection that has had no request for this long",
                   reason: "Raise it above the idle timeout of the proxy in front",
                   details: "Until the first response of an HTTP/1.1 connection, head_timeout applies instead if it " \
                            "is shorter. An HTTP/2 connection must send its preface and SETTINGS within head_timeout."),
      Option.limit(:write_timeout, :seconds, 30, 0.001,
                   text: "close a connection whose client has read nothing of a response for this long",
                   reason: "Raise it when clients pause downloads, as media players do",
                   details: "Heddle also ends a response that a client reads at less than 1 kB a second on average, " \
                            "unless it is a file. See [Slow readers](admission.md#slow-readers).")
    ].freeze
  end
end
