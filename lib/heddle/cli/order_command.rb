# frozen_string_literal: true

module Heddle
  module CLI
    # The base of commands that make a running server act.
    class OrderCommand < ControlCommand
      private

      def act
        say(carry_out)
        DONE
      end

      # Sends the command, and returns the server's response.
      def carry_out = client.command(order)

      def order = name
    end
  end
end
