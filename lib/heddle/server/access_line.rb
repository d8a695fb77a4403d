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
        # @param exchange [HTTP::H1::Exchange] whose answer is complete, or given up
        # @return [String]
        def of(time, exchange)
          target = exchange.target
          target = "#{target.byteslice(0, TARGET)}..." if target.bytesize > TARGET
          "#{time} #{exchange.status || "---"} #{exchange.method} #{target} #{size(exchange.sent)} " \
            "in #{duration(exchange.age)} for #{exchange.remote_address}#{remark(exchange)}\n"
        end

        private

        def remark(exchange)
          return " (taken over)" if exchange.hijacked?

          " (not complete)" unless exchange.complete? || exchange.status.nil?
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
