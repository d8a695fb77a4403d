# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # How many connections there are, and how long one may do nothing.
    CONNECTIONS = [
      Option.new(name: :max_connections, unit: :count, default: 0, range: 0..10_000_000, advanced: true,
                 default_words: "0: by memory and descriptors", example: "max_connections 5_000",
                 text: "maximum number of connections in each worker; 0 for as many as memory and descriptors allow",
                 reason: "Raise it when most connections are idle, such as WebSockets",
                 details: "With 0 each worker takes as many as fit into its share of the memory of the container or " \
                          "the machine: about 5,300 in 1 GiB with one worker. A connection counts as 176 KiB, its " \
                          "maximum before a request runs; an idle one uses much less. http2_memory counts once for " \
                          "all. 64 descriptors are left to the application, and a quarter of all to bodies in " \
                          "files. While new connections wait at the limit, the server closes old ones: first " \
                          "those that have waited longest for a request, and for a second at least. Then come those " \
                          "whose client pauses, and last WebSockets and event streams. An address outside of " \
                          "trusted_proxies may have a quarter of all connections. The log reports both. See " \
                          "[Connections](sockets.md#connections-at-the-limit)."),
      Option.limit(:idle_timeout, :seconds, 75, 0.001,
                   text: "close a connection that has had no request for this long",
                   reason: "Raise it above the idle timeout of the proxy in front",
                   details: "A connection that has never sent a byte has head_timeout."),
      Option.limit(:write_timeout, :seconds, 30, 0.001,
                   text: "close a connection whose client has read nothing of a response for this long",
                   reason: "Raise it when clients pause downloads, as media players do")
    ].freeze
  end
end
