# frozen_string_literal: true

module Heddle
  module CLI
    # What tells a running server to do something.
    class OrderCommand < ControlCommand
      private

      def act
        @output.puts(Visible.lines(@client.command(order), indent: ""))
        DONE
      end

      def order = name
    end
  end
end
