# frozen_string_literal: true

require "heddle/temporary_folder" # here: a Ractor of Ruby 3.3 can load nothing
require "heddle/autoloads"

Heddle::Autoloads.load("heddle/options")

module Heddle
  # All options of the server, by subject. A file of options/ has each one's name, unit, default, bounds and text.
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
    # Those that {Server::Configuration} has; {HTTP::Limits} has the others.
    OWN = ALL.reject(&:limit).freeze
    # The options of a configuration file: all but its own path.
    IN_FILE = ALL.reject { |option| option.name == :config }.freeze
    # Options that a reload does not change: the master's sockets and files stay.
    AT_START = %i[bind port user pidfile pubsub pubsub_memory pubsub_history].freeze
    BY_NAME = ALL.to_h { |option| [option.name, option] }.freeze

    # Environment variables of Heddle's that are no options, each with what reads it; a name that ends in `_` stands
    # for all that begin so.
    OTHER_VARIABLES = {
      "HEDDLE_NATIVE" => "which build of the extension is loaded",
      "HEDDLE_GUARD_PAGES" => "whether fibers' stacks have guard pages",
      "HEDDLE_OFFLOAD_IMPORTS" => "which entries of libraries' import tables are changed",
      "HEDDLE_RUBY" => "the Ruby of bin/setup and bin/test",
      "HEDDLE_INHERITED" => "what a master leaves to the one that replaces it",
      "HEDDLE_DEBUG" => "how the extension is built", "HEDDLE_SANITIZE" => "how the extension is built",
      "HEDDLE_PORTABLE" => "how the extension is built", "HEDDLE_CHECKOUT" => "how the extension is built",
      "HEDDLE_WERROR" => "how the extension is built", "HEDDLE_ZLIB" => "how the extension is built",
      "HEDDLE_LIBKQUEUE" => "the tests",
      "HEDDLE_TEST_" => "the tests", "HEDDLE_BENCH_" => "the benchmarks", "HEDDLE_FIGURES" => "the tests",
      "HEDDLE_JOBS" => "the tests", "HEDDLE_SANITIZED" => "the tests", "HEDDLE_SEED" => "the tests",
      "HEDDLE_SOAK_CALLS" => "the tests", "HEDDLE_TORTURE" => "the tests",
      "HEDDLE_CHAOS" => "the trials", "HEDDLE_TRIAL_" => "the trials"
    }.freeze

    # @return [Array<String>] every variable that an option reads
    def self.variables = ALL.flat_map { |option| option.variables + option.conditions.keys }
  end
end
