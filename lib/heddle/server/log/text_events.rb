# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # Builds lines for people:
      #
      #     21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1
      #
      # Text from clients and applications is escaped, so that it can't forge another line.
      class TextEvents
        # The indent of the second and later lines of a cause's message.
        NESTED = "        "
        private_constant :NESTED

        # @param exchange [HTTP::Exchange]
        # @return [String, nil] what a request's line says of a response that the server did not complete; else nil
        def self.remark(exchange)
          return "taken over" if exchange.detached?

          "not complete" unless exchange.complete? || exchange.status.nil?
        end

        # @param dated [Boolean] whether lines begin with the date, too, because no journal adds one
        def initialize(dated: false)
          @time = CachedTime.new(dated ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S")
        end

        # @return [Boolean] whether the output may contain only lines of requests
        def only_requests? = false

        # @param exchange [HTTP::Exchange] whose response is complete or abandoned
        # @return [String]
        def request(exchange)
          id = exchange.request_id
          HTTP::AccessLog.of_plain(HTTP::AccessLog::TEXT, time, exchange, id) ||
            HTTP::AccessLog.line(HTTP::AccessLog::TEXT, time, exchange, id, exchange.status, exchange.sent,
                                 remark(exchange))
        end

        # @return [String]
        def rejected(remote, status, reason)
          reason = PrintableText.line(reason)
          event(Events::TABLE.fetch(:request_rejected), { status:, reason:, remote: }.compact)
        end

        # @param event [Events::Event]
        # @param values [Hash{Symbol => Object}]
        # @return [String] the event's text, followed by the lines of its backtrace and its cause if it has them
        def event(event, values)
          lines = values[:backtrace].to_a.map { |line| "    from #{PrintableText.line(line)}\n" }
          cause = values[:cause] if values.key?(:backtrace)
          lines << "    caused by #{PrintableText.lines(cause, indent: NESTED)}\n" if cause
          "#{time} #{PrintableText.lines(event.text(values))}\n#{lines.join}"
        end

        private

        def remark(exchange)
          remark = TextEvents.remark(exchange)
          " (#{remark})" if remark
        end

        def time = @time.to_s
      end
    end
  end
end
