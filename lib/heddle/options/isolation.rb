# frozen_string_literal: true

module Heddle
  module Options
    # The names of the adaptations in {Adaptations}, which the option `adapt` accepts.
    ADAPTED = %i[rack_timeout concurrent_ruby tilt newrelic_rpm i18n sentry_ruby activesupport activerecord sequel
                 trilogy mysql2 net_http redis_client opentelemetry_sdk async].freeze

    # Options of isolation between requests.
    ISOLATION = [
      # The default lists the variables of I18n before 1.15 and of Sentry.
      Option.new(name: :isolate, unit: :list, default: %w[i18n_config sentry_hub], none: "off", argument: "NAMES",
                 advanced: true, example: "isolate :i18n_config, :sentry_hub, :tenant",
                 text: "thread variables (Thread#thread_variable_get) that have a separate value in each request",
                 reason: "Set it when a gem keeps a request's state in thread variables"),
      Option.new(name: :adapt, unit: :list, choices: ADAPTED, default: ADAPTED, default_words: "all", none: "off",
                 argument: "NAMES", advanced: true, example: "adapt except: :rack_timeout",
                 text: "gems that Heddle changes when the server starts, so that they work with fibers",
                 reason: "Leave a gem out when its change breaks something; docs/gems.md lists the changes",
                 details: "Heddle changes only versions of a gem with which it was tested.")
    ].freeze
  end
end
