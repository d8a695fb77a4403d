# frozen_string_literal: true

module Heddle
  class Server
    # The server's log: one line for each request, and one for each event ({Events}). Each log format has a class that
    # builds the lines of events; the C code in ext/heddle/http/log builds those of requests.
    class Log
      Autoloads.add(self, "heddle/server/log")

      # For each format, the class that builds its lines, and the argument of that class.
      # shareable_constant_value: literal
      FORMATS = { text: %i[TextEvents], json: %i[JsonEvents], clf: %i[ClfEvents COMMON],
                  combined: %i[ClfEvents COMBINED] }
      # shareable_constant_value: none

      MINUTE = 60
      # Maximum number of lines of an application's backtrace that are logged.
      LINES = 30
      # A backtrace line that begins like this, and all lines after it, belong to the server's code.
      BOTTOM = %w[handler thread_handler].map { |name| "#{::File.expand_path("../rack", __dir__)}/#{name}.rb:".freeze }
                                         .freeze
      # Maximum number of bytes of a request's target that are logged with an error.
      TARGET = 200
      private_constant :MINUTE, :LINES, :BOTTOM, :TARGET

      # @param configuration [Configuration]
      # @param output [#write] receives requests and events if the configuration names no log file
      # @return [Log] the log that the options describe
      # @raise [BootError] when the file can't be written
      def self.of(configuration, output: $stdout)
        output = File.new(configuration.log_file) if configuration.log_file
        new(output:, **settings(configuration))
      end

      # @param configuration [Configuration]
      # @return [Hash{Symbol => Object}] the arguments of {#initialize}, from the options
      def self.settings(configuration)
        { access: configuration.access_log, format: configuration.log_format, level: configuration.log_level,
          file: !configuration.log_file.nil? }
      end

      # @return [Integer] the number of clients that left while the application served their request, plus those that
      #   were passed to {#count_gone}
      attr_reader :gone
      # @return [ErrorStream] the stream that every request gets as `rack.errors`
      attr_reader :errors

      # @param output [#write] receives requests and events
      # @param errors [#write] receives errors
      # @param access [Boolean] whether requests are logged
      # @param format [Symbol] one of {FORMATS}
      # @param level [Symbol] one of {Events::LEVELS}: less important events are not logged
      # @param file [Boolean] whether the output is a log file. A log file also receives errors, except in the formats
      #   clf and combined. In the format text, each of its lines begins with the date; a journal or a container's log
      #   adds the date by itself.
      def initialize(output: $stdout, errors: $stderr, access: true, format: :text, level: :info, file: false)
        name, kind = FORMATS.fetch(format)
        arguments = kind ? [HTTP::AccessLog.const_get(kind)] : []
        @format = Log.const_get(name).new(*arguments, **(format == :text ? { dated: file } : {}))
        @output = LineBuffer.new(output) { |*loss| report_loss(*loss) }
        @errors = ErrorStream.new(errors) { |*loss| loss_line(*loss) }
        @level = Events::LEVELS.index(level)
        @access = access && logged?(:info)
        @file = file
        @gone = 0
        reset_counts
      end

      # From now on, collects lines and writes several at once. Called when the first loop starts.
      # @return [void]
      def start = @output.start

      # Writes the collected lines. From now on, each line is written at once.
      # @return [void]
      def stop
        @output.stop
        @errors.stop
      end

      # @return [Boolean] whether requests are logged
      def access? = @access

      # Logs a request whose response is complete or abandoned.
      # @param exchange [HTTP::Exchange]
      def request(exchange) = @output.write(@format.request(exchange))

      # Logs a WebSocket that has ended.
      # @param account [Rack::SocketCallbacks::Account]
      def web_socket(account)
        values = account.to_h
        event(:websocket, **values.except(:seconds), duration: values[:seconds].round(6)) unless @format.only_requests?
      end

      # Logs a request that was rejected before it reached the application. If requests are not logged, only a rejection
      # with status 503 is: as an event, at most once a minute.
      # @param address [String, nil] the address of the client
      # @param status [Integer] the status of the response
      # @param reason [String]
      # @param by_admission [Boolean] whether {Admission} reports this rejection, together with others, in its own event
      def rejected(address, status, reason, by_admission)
        if @access then @output.write(@format.rejected(address, status, reason))
        elsif status == 503 && !by_admission then report_shortage(reason)
        end
      end

      # Logs an exception that the application has raised.
      # @param exchange [HTTP::Exchange]
      # @param error [Exception]
      def failure(exchange, error)
        cause = ErrorText.cause(error)
        cause &&= "#{ErrorText.summary(cause, indent: "")} (#{ErrorText.backtrace(cause).first})"
        event(:request_failed, **request_of(exchange), class: ErrorText.class_name(error),
                                                       error: ErrorText.message(error), backtrace: backtrace(error),
                                                       cause:)
      end

      # Logs a response whose body contradicts its head, for example because its length differs from Content-Length.
      # @param exchange [HTTP::Exchange]
      # @param text [String]
      def violation(exchange, text) = event(:response_violation, **request_of(exchange), violation: text)

      # Counts a client that left while the application served its request. That is not an error.
      # @param _exchange [HTTP::Exchange]
      # @param _error [ClientGoneError]
      def client_gone(_exchange, _error) = @gone += 1

      # Writes a line that the log of a Ractor has built in the same format.
      # @param text [String]
      def line(text) = @output.write(text)

      # @param number [Integer] how many clients the log of a Ractor, or the sockets of a loop that has ended, have
      #   counted as gone
      def count_gone(number) = @gone += number

      # Logs an event, and counts it if it is an error or a warning.
      # @param name [Symbol] a key of {Events::TABLE}
      # @param fields [Hash{Symbol => Object}] fields whose value is nil are left out
      # @return [void]
      def event(name, **fields)
        event = Events::TABLE.fetch(name)
        count(name) unless event.level == :info
        return unless logged?(event.level)

        line = @format.event(event, fields.compact)
        event.level == :error ? write_error(line) : say(line)
      end

      # @return [Hash{Symbol => Integer}] how often each error and each warning has happened in this process
      def counts = @counting == Process.pid ? @counts.dup : {}

      private

      def logged?(level) = Events::LEVELS.index(level) >= @level

      # A forked child counts only its own events.
      def count(name)
        reset_counts unless @counting == Process.pid
        @counts[name] += 1
      end

      def reset_counts
        @counts = Hash.new(0)
        @counting = Process.pid
      end

      def request_of(exchange)
        { method: exchange.method, target: exchange.target.byteslice(0, TARGET), request_id: exchange.request_id }
      end

      # Returns the backtrace without the server's own code at its end.
      def backtrace(error) = ErrorText.backtrace(error).take_while { |line| !line.start_with?(*BOTTOM) }.take(LINES)

      def report_shortage(reason)
        now = MonotonicClock.now
        return if @shortage_reported && now - @shortage_reported < MINUTE

        @shortage_reported = now
        event(:requests_refused, reason:)
      end

      # Programs that read clf or combined expect only lines of requests. All other lines go to the error stream.
      def say(line) = @format.only_requests? ? @errors.write(line) : @output.write(line)

      # Errors are written at once: they are rare, and the process may be about to end.
      def write_error(line)
        if @file && !@format.only_requests?
          @output.write(line)
          @output.flush
        end
        @errors.write(line)
      end

      # @return [String] the line that reports lost lines of the output; "" if this method has written that line to the
      #   error stream
      def report_loss(...)
        line = loss_line(...)
        return line unless @format.only_requests?

        @errors.write(line)
        ""
      end

      def loss_line(lines, reason)
        count(:log_lines_lost)
        @format.event(Events::TABLE.fetch(:log_lines_lost), { lines:, reason: })
      end
    end
  end
end
