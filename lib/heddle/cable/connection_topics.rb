# frozen_string_literal: true

module Heddle
  module Cable
    # Prepended to ActionCable::Connection::Base. A connection of Heddle's server makes its subscriptions in its socket
    # ({Topics}), and not in the adapter.
    module ConnectionTopics
      def pubsub = heddle_topics || super

      # @return [Topics, nil] nil: the adapter delivers broadcasts
      # @api private
      def heddle_topics = socket.is_a?(Socket) ? socket.topics : nil
    end
  end
end
