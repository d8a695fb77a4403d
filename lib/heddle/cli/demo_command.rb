# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle demo`: serves the demo site.
    class DemoCommand < ServingCommand
      HELP = <<~TEXT
        demo: serve the demo site

          heddle demo [flags of serve]

        Does not read a configuration file. The defaults are --workers 0, --no-access-log and --slow-request 0.
        `heddle help serve` lists the flags.
      TEXT

      # @return [String]
      def self.help = HELP

      private

      def command = "demo"

      def max_arguments = 0

      def app_name = "the demo site"

      def load = Demo.new(server: @server, urls: -> { @master.resources.urls })

      # The access log is off, because the page's button "Send a crowd" sends a hundred thousand requests. The server is
      # one process, because the page shows only the numbers of the process that serves it.
      def defaults = { access_log: false, workers: 0, slow_request: 0 }

      # The current folder may be an application's. Its configuration must not apply to the demo.
      def configuration_file = nil
    end
  end
end
