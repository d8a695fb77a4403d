# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Where the server listens.
    LISTENING = [
      Option.new(name: :bind, unit: :list, short: "-b", argument: "ADDRESS", default_words: "localhost",
                 example: 'bind "0.0.0.0"',
                 details: "An address that names no port has that of the option `port`, so that PORT counts; name " \
                          "one where several addresses have several ports.",
                 text: "where to listen: host:port, [::1]:port, tls://host:port, unix:path?mode=660 or systemd; " \
                       "may be repeated"),
      Option.new(name: :port, unit: :count, default: 9_292, range: 0..65_535, short: "-p",
                 variables: %w[HEDDLE_PORT PORT], example: "port 3000",
                 text: "the port of addresses that name none; 0 lets the system choose one"),
      Option.new(name: :reuse_port, unit: :switch, default: false, advanced: true, example: "reuse_port true",
                 text: "whether other processes may listen on the same ports (SO_REUSEPORT)"),
      Option.new(name: :backlog, unit: :count, default: 1_024, range: 1..1_000_000, advanced: true,
                 text: "how many connections the system keeps until they are accepted")
    ].freeze
  end
end
