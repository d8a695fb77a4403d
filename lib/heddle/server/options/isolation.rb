# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # Options of isolation between requests.
      ISOLATION = [
        Option.new(name: :isolate, unit: :list, default: Isolation::KNOWN, none: "off", argument: "NAMES",
                   advanced: true, example: "isolate :i18n_config, :sentry_hub, :tenant",
                   text: "the thread variables (Thread#thread_variable_get) of which each request has its own copy")
      ].freeze
    end
  end
end
