# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle stop`: stops a running server.
    class StopCommand < OrderCommand
      NAME = "stop"
      # Seconds between two checks whether the server has ended.
      POLL_INTERVAL = 0.1
      UNANSWERED = "some requests were cut off before they were answered, or a worker failed: see the server's log"
      UNKNOWN = "the server ended without reporting whether all requests were answered: see its log"
      private_constant :POLL_INTERVAL, :UNANSWERED, :UNKNOWN

      private

      def declare(options)
        super
        options.on("--now", "do not wait for running requests") { @now = true }
        options.on("--no-wait", "return without waiting for the server to end") { @impatient = true }
      end

      def order = @now ? "stop-now" : "stop"

      def act
        return super if @impatient

        answered = client.await_end { super() }
        sleep(POLL_INTERVAL) while client.running?
        @output.puts("stopped")
        return DONE if answered

        warn "heddle: #{answered.nil? ? UNKNOWN : UNANSWERED}"
        @now && !answered.nil? ? DONE : FAILED
      end
    end
  end
end
