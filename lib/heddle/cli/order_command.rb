# frozen_string_literal: true

module Heddle
  module CLI
    # The base of commands that make a running server act.
    class OrderCommand < ControlCommand
      private

      def act
        @output.puts(Visible.lines(client.command(order), indent: ""))
        DONE
      end

      def order = name
    end
  end
end
