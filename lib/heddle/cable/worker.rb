# frozen_string_literal: true

module Heddle
  module Cable
    # Runs the application's code for a connection in the calling fiber: inside the Rails executor, with the tags of the
    # connection's log. It has Action Cable's callbacks and none of its threads.
    class Worker < ::ActionCable::Server::Worker
      SOURCE = "application.action_cable"
      private_constant :SOURCE

      def initialize; end # rubocop:disable Lint/MissingSuper -- it would make threads

      def stopping? = false

      # A failure is logged and reported; the connection continues.
      # @param connection [ActionCable::Connection::Base]
      # @return [Boolean] whether it succeeded
      def run(connection)
        succeeded = false
        work(connection) do
          yield
          succeeded = true
        rescue ApplicationFailure => e
          report(connection, e)
        end
        succeeded
      end

      private

      def report(connection, error)
        connection.logger.error("There was an exception - #{ErrorText.class_name(error)}(#{ErrorText.message(error)})")
        connection.logger.error(error.backtrace.join("\n")) if error.backtrace
        ::Rails.error.report(error, handled: false, source: SOURCE) if defined?(::Rails.error)
      end
    end
  end
end
