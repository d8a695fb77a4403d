# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Where metrics, health and commands are answered.
    CONTROL = [
      Option.new(name: :control, unit: :list, none: "off", argument: "ADDRESS",
                 default_words: "a unix socket of this folder's", example: 'control ["tcp://127.0.0.1:9293"]',
                 text: "addresses for metrics, health checks and commands: unix:path, tcp://host:port or off; may be " \
                       "repeated",
                 reason: "Set it when a monitoring system reads metrics over TCP, or two servers share a folder",
                 details: "The unix socket is tmp/heddle-control.sock where there is a folder tmp; only this user " \
                          "may open it. Over TCP there are only metrics and health. See " \
                          "[Observability](observability.md).")
    ].freeze
  end
end
