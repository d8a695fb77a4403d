# frozen_string_literal: true

require "heddle/version"

module Heddle
  # The command `heddle`.
  module CLI
    autoload :Demo, "heddle/cli/demo"
    autoload :DemoCommand, "heddle/cli/demo_command"
    autoload :Flags, "heddle/cli/flags"
    autoload :Help, "heddle/cli/help"
    autoload :Nearest, "heddle/cli/nearest"
    autoload :Serve, "heddle/cli/serve"
    autoload :ServeCommand, "heddle/cli/serve_command"
    autoload :UsageError, "heddle/cli/usage_error"

    # Each command's name, and what the help says of it.
    COMMANDS = {
      "serve" => "serve the application of a config.ru: heddle serve [config.ru] [flags], or heddle config.ru",
      "demo" => "serve the demo site: heddle demo [flags]",
      "version" => "print the version",
      "help" => "print this, or a command's flags: heddle help serve"
    }.freeze

    # Exit statuses: all went well; it could not be done; the command line makes no sense; Ctrl-C.
    DONE = 0
    FAILED = 1
    MISUSED = 2
    INTERRUPTED = 130

    class << self
      # @param arguments [Array<String>]
      # @param output [IO]
      # @param errors [IO]
      # @return [Integer] the exit status
      def run(arguments, output: $stdout, errors: $stderr)
        dispatch(arguments.dup, output)
      rescue UsageError => e
        tell(errors, e, MISUSED)
      rescue Interrupt
        INTERRUPTED
      end

      private

      def dispatch(arguments, output)
        name = arguments.first
        case name
        when nil, "help", "--help", "-h" then say(output, Help.for(arguments[1]))
        when "version", "--version", "-v" then say(output, "heddle #{VERSION}")
        when "serve" then ServeCommand.new(arguments.drop(1), output).run
        when "demo" then DemoCommand.new(arguments.drop(1), output).run
        else
          return ServeCommand.new(arguments, output).run if name.end_with?(".ru") || File.exist?(name)

          raise UsageError, unknown(name)
        end
      end

      def unknown(name)
        if name.start_with?("-")
          return "there is no flag #{name} without a command#{Nearest.hint(name, ["--help", "--version"])}" \
                 "#{" A server's flags come after its command: heddle serve #{name}" if Flags.known?(name)}"
        end

        "there is no command #{name}#{Nearest.hint(name, COMMANDS.keys)} `heddle help` lists them."
      end

      def say(output, text)
        output.puts(text)
        DONE
      end

      def tell(errors, error, status)
        errors.puts("heddle: #{error.message}")
        status
      end
    end
  end
end
