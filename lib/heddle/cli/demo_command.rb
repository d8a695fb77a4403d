# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle demo`: serves the demo site.
    class DemoCommand < Serve
      private

      def command = "demo"

      def most_arguments = 0

      def what = "the demo site"

      def load = Demo.app(server: @server)

      # The crowd that the page sends asks a hundred thousand times: nobody reads that, unless they say so.
      def defaults = { access_log: false, control: [] }

      # The folder where somebody tries the demo may be an application's.
      def configuration_file = nil
    end
  end
end
