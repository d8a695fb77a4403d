# frozen_string_literal: true

module Heddle
  module Options
    # Where the server listens.
    LISTENING = [
      Option.new(name: :bind, unit: :list, short: "-b", argument: "ADDRESS", default_words: "localhost",
                 example: 'bind "0.0.0.0"',
                 text: "addresses to listen on: host:port, [::1]:port, tls://host:port, unix:path?mode=660 or " \
                       "systemd; may be repeated",
                 reason: "Set it when clients or the proxy run on other machines, or connect through a unix socket",
                 details: "An address without a port uses the option `port`, and thus the variable PORT. If " \
                          "addresses need different ports, include the port in each address."),
      Option.new(name: :port, unit: :count, default: 9_292, range: 0..65_535, short: "-p",
                 variables: %w[HEDDLE_PORT PORT], example: "port 3000",
                 text: "port of addresses that don't include a port; 0 to let the system choose a free port",
                 reason: "Set it when the platform or the proxy expects another port")
    ].freeze
  end
end
