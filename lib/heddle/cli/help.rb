# frozen_string_literal: true

module Heddle
  module CLI
    # The texts of `--help` and `heddle help`.
    module Help
      WIDTH = 100
      COLUMN = 34
      ALL = "--all"
      private_constant :WIDTH, :COLUMN, :ALL

      class << self
        # @param name [String, nil] a command or an option; nil for the list of commands
        # @param more [Array<String>] with `--all`, the help for `serve` includes the rarely needed options
        # @return [String]
        # @raise [UsageError] for an unknown name
        def for(name = nil, *more)
          return general if name.nil? || name == "help"
          return "heddle version: print the version" if name == "version"
          return server(all: more.include?(ALL)) if name == "serve"
          return CLI.const_get(COMMANDS.fetch(name).class_name).help if COMMANDS.key?(name)

          option(name)
        end

        private

        def general
          rows = COMMANDS.map { |name, command| row_of("  #{name}", command.text, 12) }
          "Heddle serves Rack applications; by default, each request runs in a fiber.\n\n#{rows.join("\n")}\n\n" \
            "`heddle help serve` lists the flags."
        end

        def server(all:)
          require "heddle/server"
          subjects = Options::SUBJECTS.filter_map do |subject, options|
            shown = options.reject { |option| option.advanced && !all }
            "#{subject}:\n\n#{shown.map { |option| row(option) }.join("\n")}" if shown.any?
          end
          <<~TEXT.chomp
            #{COMMANDS.fetch("serve").text.sub(/\A./, &:upcase)}

            #{subjects.join("\n\n")}

            #{"`heddle help serve --all` also lists limits and rarely needed options.\n" unless all}Instead of a flag, you can set an environment variable (such as HEDDLE_STOP_TIMEOUT) or, except for
            -C, write a line in config/heddle.rb (such as stop_timeout 20). `heddle help stop_timeout` shows
            both. Sizes may end in k, m or g.
          TEXT
        end

        def option(name)
          require "heddle/server"
          found = Options::BY_NAME[name.delete_prefix("--").tr("-", "_").to_sym]
          return Server::OptionPage.new(found).text if found

          words = COMMANDS.keys + Options::BY_NAME.keys.map(&:to_s)
          raise UsageError, "there is no command or option #{name}#{NameSuggestion.hint(name, words)} " \
                            "`heddle help` lists the commands."
        end

        def row(option)
          flag = "#{option.flag} #{option.argument}"
          flag = "--[no-]#{option.flag.delete_prefix("--")}" if option.unit == :switch
          notes = []
          if option.unit == :list && option.choices
            notes << "#{"#{option.none}, or " if option.none}any of #{option.choices.join(", ")}"
          end
          notes << "default: #{option.default_text}" unless option.default_text.empty?
          row_of("  #{option.short ? "#{option.short}, " : "    "}#{flag}",
                 notes.empty? ? option.text : "#{option.text} (#{notes.join("; ")})", COLUMN)
        end

        def row_of(left, text, column)
          lines = wrap(text, WIDTH - column)
          first = left.length < column ? left.ljust(column) + lines.shift : left
          [first, *lines.map { |line| (" " * column) + line }].join("\n")
        end

        def wrap(text, width) = text.scan(/\S.{0,#{width - 1}}(?=\s|\z)/)
      end
    end
  end
end
