# frozen_string_literal: true

module Heddle
  class Server
    # What the server tells: a line for each request on one stream, what went wrong on the other.
    class Log
      # Lines of an application's backtrace.
      LINES = 30
      # Below this line of a backtrace is only the server.
      BOTTOM = %w[handler thread_handler].map { |name| "#{File.expand_path("../rack", __dir__)}/#{name}.rb:" }.freeze
      private_constant :LINES, :BOTTOM

      # @return [Integer] clients that left before they had their answer
      attr_reader :gone
      # @return [#puts, #write, #flush] where errors go; `rack.errors` of every request
      attr_reader :errors

      # @param output [#write] for requests and notices
      # @param errors [#write]
      # @param access [Boolean] whether requests are logged
      def initialize(output: $stdout, errors: $stderr, access: true)
        @output = LineBuffer.new(output)
        @errors = errors
        @access = access
        @gone = 0
        @second = @time = nil
      end

      # Lines are written together from now on, as long as the loop runs.
      # @return [void]
      def start = @output.start

      # @return [void]
      def stop = @output.stop

      # @return [Boolean] whether requests are logged
      def access? = @access

      # A request was answered, or given up.
      # @param exchange [HTTP::H1::Exchange]
      def request(exchange) = @output.write(AccessLine.of(time, exchange))

      # A client sent what is no request.
      # @param address [String] the client's
      # @param status [Integer] of the answer
      # @param reason [String]
      def refused(address, status, reason)
        @output.write("#{time} #{status} refused: #{reason}, for #{address}\n") if @access
      end

      # The application raised.
      # @param exchange [HTTP::H1::Exchange]
      # @param error [Exception]
      def failure(exchange, error)
        lines = (error.backtrace || []).take_while { |line| !line.start_with?(*BOTTOM) }
        lines = lines.take(LINES).map { |line| "    from #{line}\n" }
        cause = error.cause
        lines << "    caused by #{cause.class}: #{cause.message} (#{cause.backtrace&.first})\n" if cause
        complain("#{time} error in #{request_line(exchange)}: #{error.class}: #{error.message}\n#{lines.join}")
      end

      # The application promised something about its answer and did not keep it.
      # @param exchange [HTTP::H1::Exchange]
      # @param text [String]
      def complaint(exchange, text) = complain("#{time} error in #{request_line(exchange)}: #{text}\n")

      # Clients leave; that is theirs to do, and no error.
      # @param _exchange [HTTP::H1::Exchange]
      # @param _error [ClientGone]
      def client_gone(_exchange, _error) = @gone += 1

      # Something about the server itself.
      # @param text [String]
      def notice(text) = @output.write("#{time} #{text}\n")

      private

      def request_line(exchange) = "#{exchange.method} #{exchange.target.byteslice(0, 200)}"

      # Errors are rare, and may be the last words: they don't wait.
      def complain(text)
        @errors.write(text)
      rescue SystemCallError, IOError
        nil
      end

      def time
        second = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
        return @time if second == @second

        @second = second
        @time = Time.at(second).strftime("%H:%M:%S")
      end
    end
  end
end
