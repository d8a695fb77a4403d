# frozen_string_literal: true

module Heddle
  module Cable
    # Prepended to ActionCable::Connection::Base: a connection of Heddle subscribes its own socket.
    module ConnectionTopics
      def pubsub = heddle_topics || super

      # @return [Topics, nil] nil: broadcasts come through the adapter
      # @api private
      def heddle_topics = socket.is_a?(Socket) ? socket.topics : nil
    end
  end
end
