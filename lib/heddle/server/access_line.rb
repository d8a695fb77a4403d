# frozen_string_literal: true

module Heddle
  class Server
    # One line of the access log, for a person to read:
    #
    #     21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1
    module AccessLine
      class << self
        # @param time [String]
        # @param exchange [HTTP::H1::Exchange] whose answer is complete, or given up
        # @return [String]
        def of(time, exchange)
          HTTP::AccessLine.of_plain(time, exchange) ||
            HTTP::AccessLine.line(time, exchange, exchange.status, exchange.sent, remark(exchange))
        end

        private

        def remark(exchange)
          return " (taken over)" if exchange.hijacked?

          " (not complete)" unless exchange.complete? || exchange.status.nil?
        end
      end
    end
  end
end
