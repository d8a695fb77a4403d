# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # Apache's common and combined log formats, for programs that read Apache's logs:
      #
      #     127.0.0.1 - - [22/Nov/2026:21:40:44 +0100] "GET /hello?a=b HTTP/1.1" 200 12
      #
      # These formats contain only requests. Events are written to the error stream as text.
      class ClfEvents < TextEvents
        # @param kind [Integer] HTTP::AccessLog::COMMON or COMBINED
        def initialize(kind)
          super()
          @kind = kind
          @fields = ' "-" "-"' if kind == HTTP::AccessLog::COMBINED
          @stamp = CachedTime.new("%d/%b/%Y:%H:%M:%S %z")
        end

        def only_requests? = true

        # @param exchange [HTTP::Exchange] whose response is complete or abandoned
        # @return [String]
        def request(exchange)
          HTTP::AccessLog.of_plain(@kind, stamp, exchange, nil) ||
            HTTP::AccessLog.line(@kind, stamp, exchange, nil, exchange.status, exchange.sent, nil)
        end

        # The request line of a rejected request is unknown, as its referer and user agent are, so "-" stands for each.
        # @return [String]
        def rejected(address, status, _reason) = "#{address || "-"} - - [#{stamp}] \"-\" #{status} -#{@fields}\n"

        private

        def stamp = @stamp.to_s
      end
    end
  end
end
