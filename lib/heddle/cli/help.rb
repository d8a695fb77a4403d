# frozen_string_literal: true

module Heddle
  module CLI
    # What `--help` prints.
    module Help
      WIDTH = 100
      COLUMN = 34
      private_constant :WIDTH, :COLUMN

      class << self
        # @param command [String, nil]
        # @return [String]
        # @raise [UsageError] for a command that there is not
        def for(command)
          return general if command.nil? || command == "help"
          return "heddle version prints the version." if command == "version"
          return server(command) if COMMANDS.key?(command)

          raise UsageError, "there is no command #{command}#{Nearest.hint(command, COMMANDS.keys)}"
        end

        private

        def general
          rows = COMMANDS.map { |name, text| "  #{name.ljust(9)} #{text}" }
          "Heddle serves Rack applications, each request in a fiber.\n\n#{rows.join("\n")}\n\n" \
            "`heddle help serve` lists the flags."
        end

        def server(command)
          require "heddle/server"
          advanced, plain = Server::Options::ALL.partition(&:advanced)
          "#{command}: #{COMMANDS.fetch(command)}\n\n#{rows(plain)}\n\nLimits:\n\n#{rows(advanced)}\n\n" \
            "Each flag has an environment variable: --stop-timeout is HEDDLE_STOP_TIMEOUT. Sizes may end in k, m or g."
        end

        def rows(options) = options.map { |option| row(option) }.join("\n")

        def row(option)
          flag = "#{option.flag} #{option.argument}"
          flag = "--[no-]#{option.flag.delete_prefix("--")}" if option.unit == :switch
          left = "  #{option.short ? "#{option.short}, " : "    "}#{flag}"
          default = option.default.nil? ? "" : " (#{option.default_text})"
          lines = wrap("#{option.text}#{default}", WIDTH - COLUMN)
          first = left.length < COLUMN ? left.ljust(COLUMN) + lines.shift : left
          [first, *lines.map { |line| (" " * COLUMN) + line }].join("\n")
        end

        def wrap(text, width) = text.scan(/\S.{0,#{width - 1}}(?=\s|\z)/)
      end
    end
  end
end
