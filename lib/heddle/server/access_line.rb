# frozen_string_literal: true

module Heddle
  class Server
    # One line of the access log, for a person to read:
    #
    #     21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1
    module AccessLine
      # Longer targets are cut; they may have 16 KiB.
      TARGET = 200
      private_constant :TARGET

      class << self
        # @param time [String]
        # @param exchange [Rack::Exchange]
        # @param seconds [Float] from the head to the end of the answer
        # @return [String]
        def of(time, exchange, seconds)
          head = exchange.head
          target = head.target
          target = "#{target.byteslice(0, TARGET)}..." if target.bytesize > TARGET
          response = exchange.response
          "#{time} #{exchange.status || "---"} #{head.method} #{target} #{size(response.sent)} " \
            "in #{duration(seconds)} for #{exchange.remote_address}#{remark(exchange, response)}\n"
        end

        private

        def remark(exchange, response)
          return " (taken over)" if exchange.hijacked?

          " (not complete)" unless response.finished? || response.status.nil? || exchange.refused?
        end

        def size(bytes)
          return "#{bytes} bytes" if bytes < 10_000
          return "#{bytes / 1_000} kB" if bytes < 10_000_000

          "#{bytes / 1_000_000} MB"
        end

        def duration(seconds)
          return "#{(seconds * 1_000).round(1)} ms" if seconds < 1

          "#{seconds.round(2)} s"
        end
      end
    end
  end
end
