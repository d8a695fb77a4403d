# frozen_string_literal: true

module Heddle
  class Server
    # Limits the time until the application's response begins (option `request_timeout`). When the time is up, the
    # blocking call in which the request waits raises {Cancelled}, the client gets 503, and the log shows the line of
    # the call. Other requests are not affected. As with {Heddle.timeout}, code that computes continues until its next
    # blocking call.
    class RequestTimeout
      # @param app [#call]
      # @param seconds [Numeric] the limit
      # @param log [#event]
      def initialize(app, seconds, log)
        @app = app
        @seconds = seconds
        @log = log
      end

      # @param env [Hash{String => Object}]
      # @return [Array] the application's response, or 503 after the limit
      # @raise [TimeoutError] if the application's own time limit has expired, not this one
      def call(env)
        response = cancelled = nil
        # The limit includes the tasks that the request starts, because the server waits for them before it responds.
        limit = Concurrency::Deadline.new(Concurrency::Context.of(Fiber.current_scheduler).task!, @seconds)
        limit.run do
          response = @app.call(env)
        rescue Cancelled => e
          cancelled = e
          raise
        end
      rescue TimeoutError
        raise unless limit&.expired?

        close_body(response)
        give_up(env, cancelled)
      end

      private

      def give_up(env, cancelled)
        place = cancelled&.backtrace&.find { |line| !Concurrency.own_line?(line) && !line.start_with?("<internal:") }
        @log.event(:request_timed_out, method: env["REQUEST_METHOD"], path: env["PATH_INFO"], timeout: @seconds, place:)
        [503, { "content-type" => "text/plain; charset=utf-8" }, ["The request took longer than #{@seconds} s.\n"]]
      end

      # Needed if the application has returned a response, but the request's tasks have not ended in time.
      def close_body(response)
        body = response[2] if response.is_a?(Array)
        body.close if body.respond_to?(:close)
      end
    end
  end
end
