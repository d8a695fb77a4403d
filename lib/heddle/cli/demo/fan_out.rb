# frozen_string_literal: true

require "json"
require "net/http"

module Heddle
  module CLI
    class Demo
      # A body that makes many real HTTP requests to a server at once, each over a socket and in a
      # fiber of its own, and tells of their starts and ends in lines of JSON while they happen.
      # Times are seconds since the first was started.
      #
      # A browser could not do this part: it opens six connections a host and queues the rest.
      class FanOut
        # @param host [String] the server's address
        # @param port [Integer]
        # @param paths [Array<String>] what to ask for, one request each
        # @param gap [Float] seconds from one start to the next
        # @param patience [Float] seconds after which a request that is not answered has failed
        def initialize(host:, port:, paths:, gap: 0.0, patience: 30.0)
          @host = host
          @port = port
          @paths = paths
          @gap = gap
          @patience = patience
          @events = Thread::Queue.new
        end

        # The last event says when the first was by the machine's clock (CLOCK_MONOTONIC).
        # When the reader goes away, the scope cancels the requests that are still open.
        #
        # @yieldparam line [String] one event, as JSON
        def each
          @began = now
          Heddle.scope do |scope|
            @paths.each_index { |number| scope.async { request(number) } }
            unanswered = @paths.size
            while unanswered.positive?
              event = @events.pop
              unanswered -= 1 unless event[:event] == "start"
              yield line(event)
            end
          end
          yield line({ event: "done", at: seconds, began: @began })
        end

        # Makes one request. `Net::HTTP` is Ruby's own, and knows nothing of fibers.
        def request(number)
          sleep number * @gap if @gap.positive?
          tell("start", number)
          http = ::Net::HTTP.new(@host, @port, nil)
          http.open_timeout = http.read_timeout = @patience
          answer = http.start { http.get(@paths[number]) }
          tell("end", number, status: answer.code.to_i)
        rescue StandardError => e
          tell("failed", number, message: "#{e.class}: #{e.message}")
        end

        private

        def tell(event, number, **more)
          @events << { event: event, request: number, at: seconds, **more }
        end

        def line(event)
          "#{JSON.generate(event)}\n"
        end

        def seconds
          (now - @began).round(4)
        end

        def now
          MonotonicClock.now
        end
      end
    end
  end
end
