# frozen_string_literal: true

module Heddle
  module CLI
    class CheckCommand
      # The output of `heddle check`.
      class Report
        HEADINGS = %w[option value from].freeze
        # Maximum width of a column, in characters. A longer value, such as a list of gems, does not widen its column.
        MAX_WIDTH = 40
        private_constant :HEADINGS, :MAX_WIDTH

        # @param configuration [Server::Configuration, nil] nil if it has mistakes
        # @param application [String, nil]
        # @param problems [Array<String>]
        # @param changed [Boolean] whether to leave out options that are not set
        def initialize(configuration, application:, problems:, changed: false)
          @configuration = configuration
          @application = application
          @problems = problems
          @changed = changed
        end

        # @return [String] the report
        def text
          parts = @configuration ? [table, details] : []
          parts << list(warnings) if warnings.any?
          parts << (@problems.empty? ? "The configuration is valid." : list(@problems))
          parts.join("\n\n")
        end

        private

        def warnings
          return [] unless @configuration

          found = @configuration.warnings + Options::ALL.flat_map { |option| variable_warnings(option) }
          found | [*@configuration.port_warning]
        end

        # Warnings about environment variables that are set without effect, because they apply only with certain values
        # of other options.
        def variable_warnings(option)
          option.conditions.filter_map do |variable, wanted|
            next if ENV[variable].to_s.empty? || wanted.all? { |name, value| @configuration[name] == value }

            needed = wanted.map { |name, value| "#{name} #{value}" }.join(" and ")
            "#{variable} is #{ENV.fetch(variable)}, but has no effect: it sets #{option.name} only with #{needed}"
          end
        end

        def table
          listed = Options::ALL
          listed = listed.reject { |option| @configuration.source(option.name).kind == :default } if @changed
          return "Every option has its default value." if listed.empty?

          rows = listed.map { |option| [option.name.to_s, shown(option), source(option)] }
          widths = [0, 1].map { |column| width([HEADINGS, *rows].map { |row| row[column].size }) }
          line = ->(row) { "#{row[0].ljust(widths[0])}  #{row[1].ljust(widths[1])}  #{row[2]}".rstrip }
          subjects = Options::SUBJECTS.filter_map do |subject, options|
            found = rows.select { |name,| options.any? { |option| option.name.to_s == name } }
            "#{subject}\n#{found.map { |row| "  #{line.call(row)}" }.join("\n")}" if found.any?
          end
          ["  #{line.call(HEADINGS)}", *subjects].join("\n")
        end

        def width(sizes) = sizes.reject { |size| size > MAX_WIDTH }.max

        def shown(option)
          value = @configuration[option.name]
          return @configuration.file || "none" if option.name == :config
          return option.default_text if value.nil?
          return "auto: #{@configuration.worker_count}" if option.name == :workers && value == :auto

          option.show(value)
        end

        def source(option) = @configuration.source(option.name).to_s

        def details
          { "configuration file" => @configuration.file || "none", "application" => @application || "none",
            "listens on" => @configuration.addresses_with_ports.join(", "),
            "hooks" => @configuration.hooks.names.join(", ") }
            .reject { |_, text| text.empty? }.map { |name, text| "#{name}: #{text}" }.join("\n")
        end

        def list(texts) = texts.map { |text| "heddle: #{text}" }.join("\n")
      end
    end
  end
end
