# frozen_string_literal: true

module Heddle
  module Cable
    # Prepended to ActionCable::Connection::Base. A connection of Heddle's server subscribes by its own socket in place
    # of the adapter.
    module ConnectionTopics
      def pubsub = heddle_topics || super

      # @return [Topics, nil] nil: the adapter delivers broadcasts
      # @api private
      def heddle_topics = socket.is_a?(Socket) ? socket.topics : nil
    end
  end
end
