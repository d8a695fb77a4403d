# frozen_string_literal: true

module Heddle
  module Cable
    # The state of a connection that moves to another process: its identifiers and subscriptions. A connection or
    # channel with other state (instance variables, callbacks, timers) can't move.
    class SocketState
      CONNECTION = %i[@server @socket @logger @subscriptions @_internal_subscriptions @started_at
                      @connection_identifier].freeze
      CHANNEL = %i[@connection @identifier @params @defer_subscription_confirmation_counter @reject_subscription
                   @subscription_confirmation_sent @unsubscribed @_streams @active_periodic_timers
                   @parameter_filter].freeze
      PLAIN = [NilClass, String, Symbol, Integer, TrueClass, FalseClass].freeze
      private_constant :CONNECTION, :CHANNEL, :PLAIN

      # @param connection [ActionCable::Connection::Base]
      # @return [Array, nil] identifiers by name, and the streams of each subscription; nil: the connection can't move
      def self.of(connection)
        names = connection.identifiers.to_a
        return unless (connection.instance_variables - CONNECTION - names.map { |name| :"@#{name}" }).empty?

        identifiers = names.to_h { |name| [name, reference(connection.public_send(name)) || (return nil)] }
        channels = connection.subscriptions.__send__(:subscriptions)
        return unless channels.each_value.all? { |channel| movable?(channel) }

        [identifiers, channels.transform_values { |channel| channel.__send__(:streams).keys }]
      end

      # Sets the identifiers of a new connection.
      # @param connection [ActionCable::Connection::Base]
      # @param identifiers [Hash{Symbol => Array}] see {of}
      # @return [void]
      # @raise [StandardError] when a record does not exist any more
      def self.identify(connection, identifiers)
        identifiers.each do |name, (kind, value)|
          connection.public_send(:"#{name}=", kind == :record ? GlobalID::Locator.locate(value) || gone(value) : value)
        end
      end

      # Restores the subscriptions of a new connection.
      # @param connection [ActionCable::Connection::Base]
      # @param topics [Topics] call this method in the block of its {Topics#resume}, where streams are only noted: the
      #   socket is still subscribed to them
      # @param subscriptions [Hash{String => Array<String>}] see {of}
      # @return [void]
      def self.subscribe(connection, topics, subscriptions)
        connection.__send__(:subscribe_to_internal_channel)
        subscriptions.each do |identifier, streams|
          channel = connection.subscriptions.__send__(:subscription_from_identifier, identifier)
          channel.instance_variable_set(:@subscription_confirmation_sent, true)
          streams.each { |name| channel.__send__(:streams)[name] = topics.stream(name, identifier) }
          connection.subscriptions.__send__(:subscriptions)[identifier] = channel
        end
      end

      def self.reference(value)
        return [:plain, value] if PLAIN.include?(value.class)

        [:record, value.to_global_id.to_s] if value.respond_to?(:to_global_id)
      end

      def self.movable?(channel)
        (channel.instance_variables - CHANNEL).empty? && channel.__send__(:active_periodic_timers).empty? &&
          channel.__send__(:streams).each_value.all?(Topics::Stream)
      end

      def self.gone(value) = raise(ArgumentError, "#{value} does not exist any more")
      private_class_method :reference, :movable?, :gone
    end
  end
end
