# frozen_string_literal: true

module Heddle
  module Cable
    # Prepended to ActionCable::Channel::Base. If a stream sends broadcasts unchanged, no Ruby code runs for each
    # message.
    module ChannelStreams
      # Methods that a channel may override to read or change its outgoing messages.
      STREAMS = %i[stream_handler default_stream_handler stream_transmitter stream_decoder
                   worker_pool_stream_handler].freeze
      private_constant :STREAMS

      # @param channel [Class] a channel's class
      # @return [Boolean] whether the class overrides neither a method in STREAMS nor `transmit`
      def self.plain?(channel)
        @plain ||= {}.compare_by_identity
        @plain.fetch(channel) do
          own = STREAMS.all? { |name| channel.instance_method(name).owner == ::ActionCable::Channel::Streams }
          @plain[channel] = own && channel.instance_method(:transmit).owner == ::ActionCable::Channel::Base
        end
      end

      def stream_from(broadcasting, callback = nil, coder: nil, &block)
        topics = connection.heddle_topics
        return super if topics.nil? || callback || block || coder || !ChannelStreams.plain?(self.class)
        return if unsubscribed?

        broadcasting = String(broadcasting)
        streams[broadcasting] = topics.stream(broadcasting, @identifier)
        logger.info "#{self.class.name} is streaming from #{broadcasting}"
      end
    end
  end
end
