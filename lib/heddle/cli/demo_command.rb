# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle demo`: serves the demo site.
    class DemoCommand < Serve
      private

      def command = "demo"

      def most_arguments = 0

      def what = "the demo site"

      # The page's own requests go where the server listens, whatever name or forwarded port the browser knows it by.
      def load = Demo.app(url: @server.urls.find { |url| url.start_with?("http://") })
    end
  end
end
