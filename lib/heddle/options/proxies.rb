# frozen_string_literal: true

module Heddle
  module Options
    # Options for servers behind a proxy.
    PROXIES = [
      Option.new(name: :trusted_proxies, unit: :list, argument: "NETWORK", none: "none",
                 default: %w[loopback private unix], example: 'trusted_proxies "loopback", "192.0.2.0/24"',
                 text: "networks of the proxies in front; Heddle uses the headers Forwarded and X-Forwarded-*, and " \
                       "the PROXY protocol, only from these",
                 reason: "Set it when the proxy has a public address, or clients connect from private networks",
                 details: "Values are networks (address/bits) and the words loopback, private, unix (clients of unix " \
                          "sockets) and all. Heddle removes these headers from the requests of all other clients, " \
                          "because Rack and Rails trust the headers. See [sockets](sockets.md).")
    ].freeze
  end
end
