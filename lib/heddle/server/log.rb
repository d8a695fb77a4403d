# frozen_string_literal: true

module Heddle
  class Server
    # The server's log: a line for each request, notices, and errors. The format's class makes the lines; those of
    # requests are made in ext/heddle/http/access_log_*.c.
    class Log
      autoload :ClfEvents, "heddle/server/log/clf_events"
      autoload :File, "heddle/server/log/file"
      autoload :JsonEvents, "heddle/server/log/json_events"
      autoload :Stamp, "heddle/server/log/stamp"
      autoload :TextEvents, "heddle/server/log/text_events"

      # The formats by name: the class that makes the lines, and its arguments.
      # shareable_constant_value: literal
      FORMATS = { text: %i[TextEvents], json: %i[JsonEvents], clf: %i[ClfEvents COMMON],
                  combined: %i[ClfEvents COMBINED] }
      # shareable_constant_value: none

      MINUTE = 60
      private_constant :MINUTE

      # @param configuration [Configuration]
      # @param output [#write] for requests and notices, where the configuration names no file
      # @return [Log] as the options say
      # @raise [BootError] when the file can't be written
      def self.of(configuration, output: $stdout)
        output = File.new(configuration.log_file) if configuration.log_file
        new(output:, **settings(configuration))
      end

      # @param configuration [Configuration]
      # @return [Hash{Symbol => Object}] what the options say, for {#initialize}. A journal or a container's log knows
      #   when a line came; a file of the log's own does not.
      def self.settings(configuration)
        { access: configuration.access_log, format: configuration.log_format, dated: !configuration.log_file.nil? }
      end

      # @return [Integer] clients that left before they had their answer
      attr_reader :gone
      # @return [ErrorStream] `rack.errors` of every request
      attr_reader :errors

      # @param output [#write] for requests and notices
      # @param errors [#write]
      # @param access [Boolean] whether requests are logged
      # @param format [Symbol] one of {FORMATS}
      # @param dated [Boolean] whether lines in the format text have the date, and not only the time
      def initialize(output: $stdout, errors: $stderr, access: true, format: :text, dated: false)
        name, kind = FORMATS.fetch(format)
        arguments = kind ? [HTTP::AccessLog.const_get(kind)] : []
        @format = Log.const_get(name).new(*arguments, **(format == :text ? { dated: } : {}))
        @stream = output
        @output = LineBuffer.new(output)
        @errors = ErrorStream.new(errors)
        @access = access
        @gone = 0
      end

      # Lines are written together from now on, as long as the loop runs.
      # @return [void]
      def start = @output.start

      # @return [void]
      def stop
        @output.stop
        @errors.stop
      end

      # @return [Boolean] whether requests are logged
      def access? = @access

      # A request was answered, or given up.
      # @param exchange [HTTP::Exchange]
      def request(exchange) = @output.write(@format.request(exchange))

      # A WebSocket has ended.
      # @param account [Rack::SocketCallbacks::Account]
      def web_socket(account)
        line = @format.web_socket(account)
        @output.write(line) if line
      end

      # A client sent what is no request, or one that the server has no room for. The latter is said once a minute where
      # requests have no lines.
      # @param address [String] the client's
      # @param status [Integer] of the answer
      # @param reason [String]
      # @param by_admission [Boolean] whether {Admission} reports it, together with others
      def rejected(address, status, reason, by_admission)
        if @access then @output.write(@format.rejected(address, status, reason))
        elsif status == 503 && !by_admission then notice_shortage(reason)
        end
      end

      # The application raised.
      # @param exchange [HTTP::Exchange]
      # @param error [Exception]
      def failure(exchange, error) = write_error(@format.failure(exchange, error))

      # The application promised something about its answer and did not keep it.
      # @param exchange [HTTP::Exchange]
      # @param text [String]
      def violation(exchange, text) = write_error(@format.violation(exchange, text))

      # Clients leave; that is theirs to do, and no error.
      # @param _exchange [HTTP::Exchange]
      # @param _error [ClientGoneError]
      def client_gone(_exchange, _error) = @gone += 1

      # One that another log has made in the same format.
      # @param text [String]
      def line(text) = @output.write(text)

      # The counts of a Ractor's log.
      # @param number [Integer] clients that left
      def count_gone(number) = @gone += number

      # Something about the server itself.
      # @param text [String]
      def notice(text) = say(@format.notice(text))

      # The same, and the last that is heard of it.
      # @param text [String]
      def alarm(text) = write_error(@format.notice(text))

      # The lines at boot.
      # @param text [String]
      def banner(text) = say(@format.banner(text))

      private

      def notice_shortage(reason)
        now = MonotonicClock.now
        return if @shortage_noticed && now - @shortage_noticed < MINUTE

        @shortage_noticed = now
        notice("requests are answered with 503: #{reason}")
      end

      # In a format that knows nothing but requests, any other line would be malformed.
      def say(line) = @format.only_requests? ? write_error(line) : @output.write(line)

      # Errors are rare, and may be the last words: they don't wait.
      def write_error(text) = @errors.write(text)
    end
  end
end
