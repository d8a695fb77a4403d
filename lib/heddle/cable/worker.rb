# frozen_string_literal: true

module Heddle
  module Cable
    # Runs the application's code for a connection in the calling fiber, inside the Rails executor and with the log tags
    # of the connection. It has the callbacks of Action Cable's worker, but not its threads.
    class Worker < ::ActionCable::Server::Worker
      SOURCE = "application.action_cable"
      private_constant :SOURCE

      def initialize; end # rubocop:disable Lint/MissingSuper -- it would start threads

      def stopping? = false

      # Runs the block. Logs and reports an exception; the connection continues.
      # @param connection [ActionCable::Connection::Base]
      # @return [Boolean] whether the block succeeded
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
