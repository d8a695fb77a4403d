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

      # Gives the order, and returns what the server says.
      def carry_out = client.command(order)

      def order = name
    end
  end
end
