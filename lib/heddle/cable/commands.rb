# frozen_string_literal: true

module Heddle
  module Cable
    # Checks the commands of one client: their form, and the numbers of commands and replays.
    class Commands
      # Commands per second, and in a burst: a page with many streams sends many.
      RATE = 50
      BURST = 1_000
      # The same for commands that ask for a history, because the response may be a thousand times as long.
      REPLAY_RATE = 5
      REPLAY_BURST = 100
      # Maximum number of subscriptions of one connection.
      MAX_SUBSCRIPTIONS = 500
      # Maximum number of bytes in a subscription's identifier. The limit is lower than that of messages, because the
      # connection keeps the identifier, as text and parsed.
      IDENTIFIER_LIMIT = 8_192
      # Characters of a client's mistake that are logged.
      SHOWN = 200
      ERRORS = [(::ActionCable::Connection::Subscriptions::Error if
        ::ActionCable::Connection::Subscriptions.const_defined?(:Error))].compact.freeze
      private_constant :RATE, :BURST, :REPLAY_RATE, :REPLAY_BURST, :SHOWN, :ERRORS

      class << self
        # @param message [String] from a client
        # @return [Hash, nil] nil: it is not a command
        def read(message)
          command = ActiveSupport::JSON.decode(message)
          command if command.is_a?(Hash)
        rescue ActiveSupport::JSON.parse_error, EncodingError
          nil
        end

        # Called only when something has failed, so that commands are not decoded twice.
        # @param command [Hash]
        # @param error [StandardError] raised by the command
        # @return [String, nil] the client's mistake, for the log; nil: it is the application's
        def mistake(command, error)
          found = error.message if ERRORS.any? { |known| error.is_a?(known) }
          unless object(command["identifier"])&.fetch("channel", nil).is_a?(String)
            found ||= "the identifier must be an object in JSON that names a channel"
          end
          found ||= mistake_in(object(command["data"])) if command["command"] == "message"
          found && PrintableText.line(found[0, SHOWN])
        end

        private

        def object(text) = text.is_a?(String) ? read(text) : nil

        def mistake_in(data)
          return "the data must be an object in JSON" unless data

          "the action must be a name" unless ["", nil, false].include?(data["action"]) || data["action"].is_a?(String)
        end
      end

      # @return [Boolean] whether another command may come; then it is counted
      def take? = (@bucket ||= WebSocket::TokenBucket.new(RATE, BURST)).take?

      # @return [Boolean] whether another history may be sent; then it is counted
      def take_replay? = (@replays ||= WebSocket::TokenBucket.new(REPLAY_RATE, REPLAY_BURST)).take?
    end
  end
end
