# frozen_string_literal: true

module Heddle
  class Server
    # All options of the server, each defined once.
    module Options
      OWN = [
        Option.new(name: :bind, unit: :list, short: "-b", argument: "ADDRESS",
                   text: "where to listen: host:port, [::1]:port or unix:path?mode=660; may be repeated"),
        Option.new(name: :port, unit: :count, default: 9_292, range: 0..65_535, short: "-p",
                   variables: %w[HEDDLE_PORT PORT],
                   text: "the port of addresses that name none; 0 lets the system choose one"),
        Option.new(name: :workers, unit: :count, default: 1, range: 1.., short: "-w",
                   text: "number of processes that serve; only 1 for now"),
        Option.new(name: :selector, unit: :word, argument: "NAME",
                   text: "io_uring, epoll, kqueue or select; the best one that the machine allows where none is named"),
        Option.new(name: :access_log, unit: :switch, default: true,
                   text: "whether each request is written to the standard output, one line a request"),
        Option.new(name: :stop_timeout, unit: :seconds, default: 30, range: 0..,
                   text: "how long running requests may take to finish when the server is stopped"),
        Option.new(name: :backlog, unit: :count, default: 1_024, range: 1.., advanced: true,
                   text: "how many connections the system keeps until they are accepted"),
        Option.new(name: :max_connections, unit: :count, default: 0, range: 0.., advanced: true,
                   text: "how many connections at once; with 0 as many as descriptors, less 64 for the application"),
        Option.new(name: :max_requests, unit: :count, default: 0, range: 0.., advanced: true,
                   text: "how many requests run at once, the others wait; with 0 as many as the loop and the memory " \
                         "bear"),
        Option.new(name: :queue_limit, unit: :count, default: 1_024, range: 1.., advanced: true,
                   text: "how many requests wait when as many run as may; more are answered with 503"),
        Option.new(name: :queue_timeout, unit: :seconds, default: 10, range: 0.001.., advanced: true,
                   text: "how long a request waits for its turn; then the answer is 503"),
        Option.new(name: :lag_target, unit: :seconds, default: 0.25, range: 0.001.., advanced: true,
                   text: "how late the loop may be before fewer requests run at once"),
        Option.new(name: :memory_limit, unit: :bytes, default: 0, range: 0.., advanced: true,
                   text: "memory above which fewer requests run at once; with 0 nine tenths of what the container or " \
                         "the machine has")
      ].freeze

      ALL = (OWN + HTTP::Configuration::LIMITS.map { |limit| Option.of_limit(limit) }).freeze

      BY_NAME = ALL.to_h { |option| [option.name, option] }.freeze

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
