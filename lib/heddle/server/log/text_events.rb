# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # Lines for a person to read. Text from clients and applications can't forge another line:
      #
      #     21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1
      class TextEvents
        # Lines of an application's backtrace.
        LINES = 30
        # Below this line of a backtrace is only the server.
        BOTTOM = %w[handler thread_handler].map do |name|
          "#{::File.expand_path("../../rack", __dir__)}/#{name}.rb:".freeze
        end.freeze
        # Bytes of a request's target beside an error.
        TARGET = 200
        # Before further lines of a cause's message.
        NESTED = "        "
        private_constant :LINES, :BOTTOM, :TARGET, :NESTED

        class << self
          # @param error [Exception]
          # @return [Array<String>] where in the application it was raised
          def backtrace(error) = (error.backtrace || []).take_while { |line| !line.start_with?(*BOTTOM) }.take(LINES)

          # @param exchange [HTTP::Exchange]
          # @return [String, nil] what keeps the answer from being complete
          def remark(exchange)
            return "taken over" if exchange.detached?

            "not complete" unless exchange.complete? || exchange.status.nil?
          end

          # @param exchange [HTTP::Exchange]
          # @return [String]
          def request_line(exchange) = "#{exchange.method} #{exchange.target.byteslice(0, TARGET)}"
        end

        # @param dated [Boolean] whether each line begins with its date, too: where no journal adds it
        def initialize(dated: false)
          @time = Stamp.new(dated ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S")
        end

        # @return [Boolean] whether lines about anything else don't belong where requests are logged
        def only_requests? = false

        # @param exchange [HTTP::Exchange] whose answer is complete, or given up
        # @return [String]
        def request(exchange)
          id = exchange.request_id
          HTTP::AccessLog.of_plain(HTTP::AccessLog::TEXT, time, exchange, id) ||
            HTTP::AccessLog.line(HTTP::AccessLog::TEXT, time, exchange, id, exchange.status, exchange.sent,
                                 remark(exchange))
        end

        # @param account [Rack::SocketCallbacks::Account] of a WebSocket that has ended
        # @return [String, nil]
        def web_socket(account)
          id = account.request_id
          "#{time} #{account.code} WebSocket #{Visible.line(account.target)} received #{messages(account.received)} " \
            "(#{size(account.received_bytes)}), sent #{messages(account.sent)} (#{size(account.sent_bytes)}) " \
            "in #{format("%.2f", account.seconds)} s for #{account.remote || "?"}#{" [#{Visible.line(id)}]" if id}\n"
        end

        # @return [String]
        def rejected(address, status, reason)
          "#{time} #{status} rejected: #{Visible.line(reason)}, for #{Visible.line(address)}\n"
        end

        # @return [String]
        def failure(exchange, error)
          lines = TextEvents.backtrace(error).map { |line| "    from #{Visible.line(line)}\n" }
          cause = error.cause
          if cause
            place = Visible.line(cause.backtrace&.first)
            lines << "    caused by #{ErrorText.summary(cause, indent: NESTED)} (#{place})\n"
          end
          "#{heading(exchange)}: #{ErrorText.summary(error)}\n#{lines.join}"
        end

        # @return [String]
        def violation(exchange, text) = "#{heading(exchange)}: #{Visible.lines(text)}\n"

        # @return [String]
        def notice(text) = "#{time} #{Visible.lines(text)}\n"

        # @return [String]
        def banner(text) = "#{text}\n"

        private

        def heading(exchange)
          id = exchange.request_id
          "#{time} error in #{Visible.line(TextEvents.request_line(exchange))}#{" [#{Visible.line(id)}]" if id}"
        end

        def remark(exchange)
          remark = TextEvents.remark(exchange)
          " (#{remark})" if remark
        end

        def time = @time.to_s

        def messages(number) = "#{number} message#{"s" unless number == 1}"

        # As in the lines of requests.
        def size(bytes)
          return "#{bytes} bytes" if bytes < 10_000

          bytes < 10_000_000 ? "#{bytes / 1_000} kB" : "#{bytes / 1_000_000} MB"
        end
      end
    end
  end
end
