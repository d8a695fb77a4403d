# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle reload`: new workers with new code, one by one.
    class ReloadCommand < OrderCommand
      NAME = "reload"

      private

      def declare(options)
        super
        options.on("--no-wait", "return without waiting for the new workers") do
          @impatient = true
        end
      end

      def act
        return super if @impatient

        @output.puts(Visible.lines(client.complete(order), indent: ""))
        DONE
      end
    end
  end
end
