# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle demo`: serves the demo site.
    class DemoCommand < ServingCommand
      HELP = <<~TEXT
        demo: serve the demo site

          heddle demo [flags of serve]

        Reads no configuration file. Its defaults are --workers 0, --no-access-log and --slow-request 0.
        `heddle help serve` lists the flags.
      TEXT

      # @return [String]
      def self.help = HELP

      private

      def command = "demo"

      def most_arguments = 0

      def what = "the demo site"

      def load = Demo.app(server: @server, urls: -> { @master.resources.urls })

      # Requests are logged only on demand: the page's crowd sends a hundred thousand. The page's panels show the
      # numbers of the process that serves the page.
      def defaults = { access_log: false, workers: 0, slow_request: 0 }

      # The folder where a user tries the demo may be an application's.
      def configuration_file = nil
    end
  end
end
