# frozen_string_literal: true

require "heddle"
require "heddle/server"
require "capybara"

module Heddle
  # Registers Heddle as a server for Capybara's system tests. Capybara runs the server in a thread of the process that
  # runs the tests. The railtie loads this file in the test environment. Without Rails:
  #
  #     require "heddle/capybara"
  #     Capybara.server = :heddle
  #
  # If the Gemfile does not contain puma, Heddle also takes the name `:puma`, which Rails and Capybara use by default.
  #
  # @api private
  module Capybara
    # The options of the application's configuration file that also apply in tests: they decide how requests share a
    # process.
    SHARING = %i[mode isolate adapt max_requests].freeze
    private_constant :SHARING

    class << self
      # Serves until the process ends. It does not log, because Capybara raises the application's errors in the test.
      #
      # @param app [#call]
      # @param port [Integer]
      # @param host [String, nil]
      # @return [void]
      def serve(app, port, host)
        host ||= "127.0.0.1"
        host = "[#{host}]" if host.include?(":")
        # The protections are off, because the thread that runs the tests is in the same process. Heddle must not
        # measure, offload or interrupt it.
        configuration = Server::Configuration.new(bind: ["#{host}:#{port}"], environment: "test", workers: 0,
                                                  protect: [], access_log: false, **sharing)
        nowhere = File.open(File::NULL, "w")
        Server.new(configuration, log: Server::Log.new(output: nowhere, errors: nowhere, access: false)).run(app)
      end

      # @return [void]
      def register
        names = [:heddle]
        names << :puma unless Rails.chosen?("puma")
        names.each do |name|
          ::Capybara.register_server(name) { |app, port, host, **| serve(app, port, host) }
        end
      end

      private

      def sharing
        configured = Server::Configuration.load(flags: { environment: "test" })
        SHARING.to_h { |name| [name, configured.public_send(name)] }
      end
    end
  end
end

Heddle::Capybara.register
