# frozen_string_literal: true

module Heddle
  module Options
    # Options for servers behind a proxy.
    PROXIES = [
      Option.new(name: :trusted_proxies, unit: :list, argument: "NETWORK", none: "none",
                 default: %w[loopback private unix], example: 'trusted_proxies "loopback", "192.0.2.0/24"',
                 text: "proxies to trust: Heddle believes their Forwarded and X-Forwarded-* headers and their PROXY " \
                       "protocol",
                 reason: "Set it when the proxy has a public address, or when clients are in private networks",
                 details: "Values are networks (address/bits) and the words loopback, private, unix (clients of unix " \
                          "sockets) and all. Heddle removes these headers from requests of other clients, because " \
                          "Rack and Rails trust them; see [sockets](sockets.md).")
    ].freeze
  end
end
