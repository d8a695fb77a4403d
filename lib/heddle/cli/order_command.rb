# frozen_string_literal: true

module Heddle
  module CLI
    # The base class of commands that change a running server, such as `heddle stop`.
    class OrderCommand < ControlCommand
      private

      def act
        say(carry_out)
        DONE
      end

      # @return [String] the server's response
      def carry_out = client.command(order)

      # The name of the command in the control protocol.
      def order = name
    end
  end
end
