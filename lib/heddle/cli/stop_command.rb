# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle stop`: ends a running server.
    class StopCommand < OrderCommand
      NAME = "stop"
      # Seconds between two looks whether it has ended.
      LOOK = 0.1
      private_constant :LOOK

      private

      def declare(options)
        super
        options.on("--now", "do not wait for running requests") { @now = true }
        options.on("--no-wait", "return at once, and not when the server has ended") { @impatient = true }
      end

      def order = @now ? "stop-now" : "stop"

      def act
        super
        return DONE if @impatient

        sleep(LOOK) while @client.there?
        @output.puts("stopped")
        DONE
      end
    end
  end
end
