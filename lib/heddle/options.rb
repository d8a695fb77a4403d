# frozen_string_literal: true

require "heddle/temporary_folder" # loaded now, because a Ractor of Ruby 3.3 can't load files
require "heddle/autoloads"
require "heddle/options/option"

Heddle::Autoloads.load("heddle/options")

module Heddle
  # All options of the server, by subject. Each file in options/ defines the options of one subject.
  #
  # @api private
  module Options
    SUBJECTS = {
      "Processes" => PROCESSES, "Where to listen" => LISTENING, "TLS" => TLS, "Connections" => CONNECTIONS,
      "Proxies" => PROXIES, "Requests" => REQUESTS, "Request bodies" => BODIES, "HTTP/2" => HTTP2,
      "WebSockets" => WEB_SOCKETS, "Pub/sub" => PUBSUB, "Logs" => LOGGING, "Control" => CONTROL,
      "Admission" => ADMISSION, "Protection" => PROTECTION, "Isolation" => ISOLATION
    }.freeze

    ALL = SUBJECTS.values.flatten.freeze
    # The options that are members of {Server::Configuration}; the others are members of {HTTP::Limits}.
    OWN = ALL.reject(&:limit).freeze
    # The options that a configuration file may set: all except `config`, which is the path of that file.
    IN_FILE = ALL.reject { |option| option.name == :config }.freeze
    # Options that a reload does not change, because the master keeps its user, sockets, files and log.
    AT_START = %i[bind port user pidfile pubsub pubsub_memory pubsub_history
                  control access_log log_format log_level log_file].freeze
    BY_NAME = ALL.to_h { |option| [option.name, option] }.freeze

    # Environment variables of Heddle that are not options: the server, the build, the tests, the trials and the
    # benchmarks read them. A name that ends in `_` is a prefix.
    OTHER_VARIABLES = %w[
      HEDDLE_NATIVE HEDDLE_GUARD_PAGES HEDDLE_OFFLOAD_IMPORTS HEDDLE_INHERITED
      HEDDLE_DEBUG HEDDLE_SANITIZE HEDDLE_PORTABLE HEDDLE_CHECKOUT HEDDLE_WERROR HEDDLE_ZLIB
      HEDDLE_RUBY HEDDLE_LIBKQUEUE HEDDLE_TEST_ HEDDLE_BENCH_ HEDDLE_FIGURES HEDDLE_JOBS HEDDLE_SANITIZED HEDDLE_SEED
      HEDDLE_SOAK_CALLS HEDDLE_TORTURE HEDDLE_CHAOS HEDDLE_TRIAL_
    ].freeze

    # @return [Array<String>] every variable that an option reads
    def self.variables = ALL.flat_map { |option| option.variables + option.conditions.keys }
  end
end
