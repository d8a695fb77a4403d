# frozen_string_literal: true

require "heddle/server/options/processes"
require "heddle/server/options/listening"
require "heddle/server/options/admission"
require "heddle/server/options/logging"
require "heddle/server/options/protection"
require "heddle/server/options/isolation"
require "heddle/server/options/bodies"
require "heddle/server/options/pubsub"
require "heddle/server/options/web_sockets"

module Heddle
  class Server
    # All options of the server, each defined once, by subject.
    module Options
      # The limits of clients' requests.
      LIMITS = HTTP::Limits::ALL.map { |limit| Option.of_limit(limit) }.freeze

      SUBJECTS = {
        "Processes" => PROCESSES, "Where to listen" => LISTENING, "Logs" => LOGGING, "Protection" => PROTECTION,
        "Isolation" => ISOLATION, "Admission" => ADMISSION, "Request bodies" => BODIES, "Pub/sub" => PUBSUB,
        "WebSockets" => WEB_SOCKETS, "Limits" => LIMITS
      }.freeze

      ALL = SUBJECTS.values.flatten.freeze
      OWN = (ALL - LIMITS).freeze
      # The options of a configuration file: all but its own path.
      IN_FILE = ALL.reject { |option| option.name == :config }.freeze
      # Options that a reload does not change: the master's sockets and files stay.
      AT_START = %i[bind port backlog reuse_port pidfile pubsub pubsub_name pubsub_stored pubsub_memory
                    pubsub_history pubsub_history_age pubsub_topics].freeze
      BY_NAME = ALL.to_h { |option| [option.name, option] }.freeze

      # Environment variables of Heddle's that are no options, each with what reads it; a name that ends in `_` stands
      # for all that begin so.
      OTHER_VARIABLES = {
        "HEDDLE_NATIVE" => "which build of the extension is loaded",
        "HEDDLE_GUARD_PAGES" => "whether fibers' stacks have guard pages",
        "HEDDLE_OFFLOAD_IMPORTS" => "whether the import tables of libraries are changed",
        "HEDDLE_RUBY" => "the Ruby of bin/setup and bin/test",
        "HEDDLE_INHERITED" => "what a master leaves to the one that replaces it",
        "HEDDLE_DEBUG" => "how the extension is built", "HEDDLE_SANITIZE" => "how the extension is built",
        "HEDDLE_WERROR" => "how the extension is built", "HEDDLE_ZLIB" => "how the extension is built",
        "HEDDLE_LIBKQUEUE" => "the tests",
        "HEDDLE_TEST_" => "the tests", "HEDDLE_BENCH_" => "the benchmarks", "HEDDLE_FIGURES" => "the tests",
        "HEDDLE_JOBS" => "the tests", "HEDDLE_SANITIZED" => "the tests", "HEDDLE_SEED" => "the tests",
        "HEDDLE_SOAK_CALLS" => "the tests", "HEDDLE_TORTURE" => "the tests",
        "HEDDLE_CHAOS" => "the trials", "HEDDLE_TRIAL_" => "the trials"
      }.freeze

      # @return [Array<String>] every variable that an option reads
      def self.variables = ALL.flat_map { |option| option.variables + option.conditions.keys }

      # @return [String] a table for the documentation
      def self.markdown
        rows = ALL.map do |option|
          negated = "--no-#{option.flag.delete_prefix("--")}" if option.unit == :switch
          flags = [option.short, option.flag, negated].compact.map { |text| "`#{text}`" }.join(", ")
          variables = option.variables.map { |text| "`#{text}`" }.join(", ")
          "| #{flags} | #{variables} | #{option.default_text} | #{option.text} |"
        end
        ["| flag | environment | default | what it does |", "| - | - | - | - |", *rows].join("\n") << "\n"
      end
    end
  end
end
