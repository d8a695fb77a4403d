# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of isolation between requests.
    ISOLATION = [
      # By default those of well-known gems: I18n before 1.15, and Sentry.
      Option.new(name: :isolate, unit: :list, default: %w[i18n_config sentry_hub], none: "off", argument: "NAMES",
                 advanced: true, example: "isolate :i18n_config, :sentry_hub, :tenant",
                 text: "thread variables (Thread#thread_variable_get) of which each request has its own copy",
                 reason: "Set it when a gem keeps a request's state in thread variables")
    ].freeze
  end
end
