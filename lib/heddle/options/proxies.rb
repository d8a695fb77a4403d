# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options for servers behind a proxy.
    PROXIES = [
      Option.new(name: :trusted_proxies, unit: :list, argument: "NETWORK", none: "none",
                 default: %w[loopback private unix], example: 'trusted_proxies "loopback", "192.0.2.0/24"',
                 details: "Networks as address/bits, or the words loopback, private, unix (clients of unix " \
                          "sockets) and all. From elsewhere such fields are removed, as Rack and Rails would " \
                          "believe them; see sockets.md.",
                 text: "clients whose Forwarded, X-Forwarded-* and PROXY protocol are believed"),
      Option.new(name: :alt_svc, unit: :word, argument: "VALUE", default_words: "none", advanced: true,
                 example: "alt_svc 'h3=\":443\"; ma=86400'",
                 details: "For a proxy beside this server that speaks HTTP/3, see http2.md. A response in which " \
                          "the application has the field keeps the application's; clear makes clients forget.",
                 text: "the field Alt-Svc of responses over https (RFC 7838)")
    ].freeze
  end
end
