# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/error"
require "heddle/version"

module Heddle
  autoload :LoadFailure, "heddle/load_failure"
  autoload :NameSuggestion, "heddle/name_suggestion"

  # The command-line program `heddle`.
  #
  # @api private
  module CLI
    Autoloads.add(self, "heddle/cli")

    # Raised if a command can't run as it was called: the command line, the configuration or a file is invalid, or a
    # file can't be written. The message says what is wrong, and how to correct it.
    class UsageError < OwnError; end

    # A command: the name of the class that runs it (nil: {CLI} itself runs it), and its line in the help. {CLI.run}
    # creates an instance of the class with two arguments, the words after the command's name and the stream to write
    # to, and calls `run`. The class method `help` returns the command's help; that of `serve` is in {Help}.
    Entry = Data.define(:class_name, :text)

    COMMANDS = {
      "serve" => Entry.new(:ServeCommand, "serve an application: heddle serve [config.ru] [flags]"),
      "demo" => Entry.new(:DemoCommand, "serve the demo site: heddle demo [flags]"),
      "check" => Entry.new(:CheckCommand, "validate the configuration, and print each option's value and its source"),
      "init" => Entry.new(:InitCommand,
                          "write a configuration file, or switch an application from Puma: heddle init --apply"),
      "status" => Entry.new(:StatusCommand, "show what a running server is doing"),
      "top" => Entry.new(:TopCommand, "show live status; press q to quit"),
      "record" => Entry.new(:RecordCommand, "record what a server's requests do, in a trace file of each worker"),
      "stop" => Entry.new(:StopCommand, "stop a running server after its running requests have been answered"),
      "reload" => Entry.new(:ReloadCommand, "load code and configuration again, and replace the workers one by one"),
      "restart" => Entry.new(:RestartCommand, "replace the master and all workers; the sockets stay open"),
      "protect" => Entry.new(:ProtectCommand, "switch a running server's protections off or on: heddle protect off|on"),
      "doctor" => Entry.new(:DoctorCommand, "check the application and this machine for problems under Heddle"),
      "version" => Entry.new(nil, "print the version"),
      "help" => Entry.new(nil, "print this text, a command's help (heddle help stop) or an option's (heddle help port)")
    }.freeze

    # The file of the application that `heddle` serves without a command.
    CONFIG = "config.ru"
    private_constant :CONFIG

    # Exit statuses: success, failure, an invalid command line, Ctrl-C.
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
        status = dispatch(arguments.map { |word| utf8(word) }, output)
        # Ruby also flushes the output at the end of the process, but ignores the errors of that flush.
        output.flush unless output.closed?
        status
      rescue UsageError => e
        print_error(errors, e, MISUSED)
      rescue LoadError => e
        print_error(errors, LoadFailure.new(e), FAILED)
      rescue Errno::EPIPE # the reader has closed the pipe, such as `| head -1`
        FAILED
      rescue Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG, Errno::EIO => e
        raise unless of_output?(e, output)

        errors.puts("heddle: standard output is incomplete: #{e.message}")
        FAILED
      rescue Errno::ENOENT => e
        raise unless e.message.end_with?("getcwd")

        errors.puts("heddle: the current folder no longer exists: change to another folder")
        FAILED
      rescue IOError
        raise unless output.closed?

        # The configuration file, which is Ruby code, may have closed the standard output.
        errors.puts("heddle: standard output is closed, so nothing can be printed") unless errors.closed?
        FAILED
      rescue Interrupt
        INTERRUPTED
      end

      # @param arguments [Array<String>]
      # @return [Boolean] whether this command line serves an application or the demo
      def serves?(arguments)
        name = arguments.first
        return File.exist?(CONFIG) if name.nil?
        return %w[serve demo].include?(name) if COMMANDS.key?(name)

        name.end_with?(".ru") || File.exist?(name) || Flags.known?(name)
      end

      private

      def dispatch(arguments, output)
        name = arguments.first
        case name
        when nil then serves?([]) ? ServeCommand.new([], output).run : print_text(output, Help.for)
        when "help", "--help", "-h" then print_text(output, Help.for(*arguments.drop(1)))
        when "version", "--version", "-v" then print_text(output, "heddle #{VERSION}")
        when *COMMANDS.keys then const_get(COMMANDS.fetch(name).class_name).new(arguments.drop(1), output).run
        else
          return ServeCommand.new(arguments, output).run if serves?(arguments)

          raise UsageError, unknown(name)
        end
      end

      # Treats arguments as UTF-8 in any locale, like the text of configuration files.
      def utf8(word)
        text = word.dup.force_encoding(Encoding::UTF_8)
        text.valid_encoding? ? text : raise(UsageError, "the argument #{text.inspect} is not UTF-8")
      end

      def unknown(name)
        if name.start_with?("-")
          return "there is no flag #{name} without a command#{NameSuggestion.hint(name, ["--help", "--version"])}"
        end

        "there is no command #{name}#{NameSuggestion.hint(name, COMMANDS.keys)} `heddle help` lists the commands."
      end

      # Ruby's message about a failed write ends with the path of the IO that failed.
      def of_output?(error, output)
        output.respond_to?(:path) && error.message.end_with?(" - #{output.path}")
      end

      def print_text(output, text)
        output.puts(text)
        DONE
      end

      def print_error(errors, error, status)
        errors.puts(error.message.gsub(/^(?=\S)/, "heddle: "))
        status
      end
    end
  end
end
