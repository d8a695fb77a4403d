# frozen_string_literal: true

require "net/http"

module Heddle
  module CLI
    class Demo
      # A response body that sends many requests to a server at once, each in its own fiber and over its own connection.
      # When a request starts or ends, the body yields a line of JSON. Times are in seconds since the first request
      # started.
      #
      # A browser can't do this over HTTP/1.1: it opens only six connections to a host, and queues the other requests.
      class FanOut
        # Seconds after which a request fails if it gets no response.
        TIMEOUT = 30
        private_constant :TIMEOUT

        # @param host [String] the server's address
        # @param port [Integer]
        # @param paths [Array<String>] the paths to request, one request for each
        def initialize(host, port, paths)
          @host = host
          @port = port
          @paths = paths
          @events = Thread::Queue.new
        end

        # If the client disconnects, the scope cancels the requests that have no response yet.
        #
        # @yieldparam line [String] one event, as JSON
        def each
          @began = MonotonicClock.now
          Heddle.scope do |scope|
            @paths.each_index { |number| scope.async { request(number) } }
            unanswered = @paths.size
            while unanswered.positive?
              event = @events.pop
              unanswered -= 1 unless event[:event] == "start"
              yield "#{JSON.generate(event)}\n"
            end
          end
          yield "#{JSON.generate(event: "done", at: seconds)}\n"
        end

        # Sends one request with Ruby's `Net::HTTP`, whose code does not use fibers.
        def request(number)
          report("start", number)
          http = ::Net::HTTP.new(@host, @port, nil)
          http.open_timeout = http.read_timeout = TIMEOUT
          answer = http.start { http.get(@paths[number]) }
          report("end", number, status: answer.code.to_i)
        rescue StandardError => e
          report("failed", number, message: "#{e.class}: #{e.message}")
        end

        private

        def report(event, number, **more) = @events << { event: event, request: number, at: seconds, **more }

        def seconds = (MonotonicClock.now - @began).round(4)
      end
    end
  end
end
