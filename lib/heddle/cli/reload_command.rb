# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle reload`: replaces the workers, one by one, with workers that have the new code and configuration.
    class ReloadCommand < OrderCommand
      NAME = "reload"

      private

      def declare(options)
        super
        options.on("--no-wait", "return without waiting for the new workers") do
          @impatient = true
        end
      end

      def carry_out = @impatient ? super : client.complete(order)
    end
  end
end
