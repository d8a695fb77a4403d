# frozen_string_literal: true

module Heddle
  module Cable
    # Checks the commands of one client. Limits the rate of all commands, and the rate of requests for a history.
    class Commands
      # Maximum commands per second, and in a burst. A page with many streams sends many commands at once.
      RATE = 50
      BURST = 1_000
      # The same limits for commands that request a history. The response to such a command may be a thousand times as
      # long as the response to another command.
      REPLAY_RATE = 5
      REPLAY_BURST = 100
      # Maximum number of subscriptions of one connection.
      MAX_SUBSCRIPTIONS = 500
      # Maximum bytes of a subscription's identifier. Lower than the limit of messages, because the connection keeps the
      # identifier, as text and parsed.
      IDENTIFIER_LIMIT = 8_192
      # Maximum length of the text that describes a client's mistake in the log, in characters.
      SHOWN = 200
      ERRORS = [(::ActionCable::Connection::Subscriptions::Error if
        ::ActionCable::Connection::Subscriptions.const_defined?(:Error))].compact.freeze
      private_constant :RATE, :BURST, :REPLAY_RATE, :REPLAY_BURST, :SHOWN, :ERRORS

      class << self
        # @param message [String] a client's message
        # @return [Hash, nil] the command; nil: the message is not a JSON object
        def read(message)
          command = ActiveSupport::JSON.decode(message)
          command if command.is_a?(Hash)
        rescue ActiveSupport::JSON.parse_error, EncodingError
          nil
        end

        # Finds the client's mistake in a command that has failed. Not called for every command, because it decodes
        # parts of the command again.
        # @param command [Hash]
        # @param error [StandardError] the error that the command has raised
        # @return [String, nil] the client's mistake, for the log; nil: the application has failed
        def mistake(command, error)
          found = error.message if ERRORS.any? { |known| error.is_a?(known) }
          unless object(command["identifier"])&.fetch("channel", nil).is_a?(String)
            found ||= "the identifier must be a JSON object with a \"channel\""
          end
          found ||= mistake_in(object(command["data"])) if command["command"] == "message"
          found && PrintableText.line(found[0, SHOWN])
        end

        private

        def object(text) = text.is_a?(String) ? read(text) : nil

        def mistake_in(data)
          return "the data must be a JSON object" unless data

          action = data["action"]
          "the \"action\" must be a string" unless ["", nil, false].include?(action) || action.is_a?(String)
        end
      end

      # @return [Boolean] whether the limits allow another command; counts it
      def take? = (@bucket ||= TokenBucket.new(RATE, BURST)).take?

      # @return [Boolean] whether the limits allow another request for a history; counts it
      def take_replay? = (@replays ||= TokenBucket.new(REPLAY_RATE, REPLAY_BURST)).take?
    end
  end
end
