# frozen_string_literal: true

module Heddle
  module Cable
    # A client's request, in AnyCable's protocol, for the messages that it has missed. For each stream, it requests the
    # messages after a position or since a time. The reply tells whether the client has got all of them.
    class History
      NUMBERS = 0..((2**63) - 1)
      private_constant :NUMBERS

      # @param request [Hash] `streams`: positions by stream; `since`: Unix time in seconds, for all other streams
      # @param refused [Boolean] whether the client gets no missed messages, because it has sent too many requests
      # @yieldparam type [String] type of the reply to send
      def initialize(request, refused: false, &answer)
        @refused = refused
        @positions = request["streams"].is_a?(Hash) ? request["streams"] : {}
        @since = request["since"] if request["since"].is_a?(Integer) && NUMBERS.cover?(request["since"])
        @answer = answer
      end

      # Begins the streams with the missed messages, and replies.
      # @param topics [Topics]
      # @param held [Array<Topics::Held>] the streams to begin
      # @return [void]
      def replay(topics, held)
        complete = held.map { |one| begin_stream(topics, one) }.all?
        @answer.call("confirm_history") if complete
      end

      private

      # @return [Boolean] whether the client gets all messages of the stream that it has missed
      def begin_stream(topics, held)
        since = position_of(held)
        return topics.begin_stream(held.stream, since) != false if since

        @answer.call("reject_history")
        topics.begin_stream(held.stream, held.position)
        false
      end

      def position_of(held)
        return if @refused

        known = @positions[held.stream.topic]
        return position_in(known) if known
        return held.position unless @since

        PubSub::History.position_before(held.stream.topic, [Time.now.to_f - @since, 0].max)
      end

      def position_in(known)
        epoch, offset = known.values_at("epoch", "offset") if known.is_a?(Hash)
        "#{epoch}:#{offset}" if epoch.is_a?(String) && offset.is_a?(Integer) && NUMBERS.cover?(offset)
      end
    end
  end
end
