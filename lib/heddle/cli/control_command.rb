# frozen_string_literal: true

require "io/console"

module Heddle
  module CLI
    # The base class of commands that connect to a running server. It finds the server's control socket, and reports
    # errors of the connection.
    class ControlCommand < Command
      # @see Command#initialize
      def initialize(arguments, output)
        super
        @control = ENV.fetch("HEDDLE_CONTROL", nil)
      end

      # @see Command#run
      def run
        super
      rescue Server::ConfigurationError => e
        raise UsageError, e.message
      rescue Server::Control::Client::NotRunningError => e
        warn "heddle: #{PrintableText.lines([@mistake, e.message].compact.join("\n"))}"
        FAILED
      rescue Server::Control::Client::NoServerError, Server::Control::Client::DeclinedError, Server::BootError => e
        warn "heddle: #{PrintableText.lines(e.message)}"
        FAILED
      end

      private

      def declare(options)
        text = "the server's control socket, such as unix:tmp/heddle-control.sock (default: the variable " \
               "HEDDLE_CONTROL, else the option `control` in the configuration file, else the socket of the current " \
               "folder)"
        options.on("--control ADDRESS", text) { |word| @control = word }
      end

      def client = @client ||= Server::Control::Client.new(address)

      def say(text) = @output.puts(PrintableText.lines(text, indent: ""))

      def terminal? = @output.respond_to?(:tty?) && @output.tty?

      def address
        words = @control.to_s.split(",").map(&:strip).reject(&:empty?)
        if words == ["off"]
          raise UsageError, "--control or HEDDLE_CONTROL is off: give the server's control socket with --control " \
                            "unix:path"
        end

        all = Server::Control::Address.all(words.empty? ? configured : words)
        all.find(&:path) or raise UsageError, "commands need the server's unix socket: give it with --control unix:path"
      end

      # A mistake in the configuration file does not end the command, because the running server may have read an
      # earlier version of the file. If the command then finds no server, it reports the mistake, too.
      # @return [Array<String>, nil] the addresses in the configuration; nil: its file must not be run ({#own_file?}) or
      #   has a mistake
      def configured
        Server::Configuration.load.control if own_file?
      rescue Server::ConfigurationError => e
        @mistake = "#{e.message.sub(/[^?]\z/, '\0.')} So the address of the control socket is unknown: correct the " \
                   "configuration, or give the socket with --control unix:path"
        nil
      end

      # Whether the configuration file belongs to this user, and only this user or the group may write to it. The file
      # is Ruby code: a command that root runs in another user's folder must not execute it.
      def own_file?
        path = ENV.fetch("HEDDLE_CONFIG", nil) || Server::Configuration::File.find(Dir.pwd)
        stat = File.stat(path) if path && File.file?(path)
        stat&.owned? && stat.mode.nobits?(0o002)
      end
    end
  end
end
