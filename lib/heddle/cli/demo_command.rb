# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle demo`: serves the demo site.
    class DemoCommand < Serve
      private

      def command = "demo"

      def most_arguments = 0

      def what = "the demo site"

      def load = Demo.app
    end
  end
end
