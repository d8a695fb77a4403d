# frozen_string_literal: true

module Heddle
  module PubSub
    # Where this process publishes.
    #
    # @api private
    module Route
      class << self
        # @see PubSub.server
        attr_reader :server

        # The backend of this process's server, when it has one.
        attr_writer :backend

        # @return [#call] publishes for a process that belongs to no server; called with the server's socket or nil, the
        #   topic and the message. runtime.rb sets it.
        attr_writer :publisher

        def server=(address)
          socket = backend = nil
          case address
          when nil then nil
          when :process then History.open
          when /\Aunix:/ then socket = -address
          else backend = Backend.new(address.to_s)
          end
          @server, @socket, @named_backend = address, socket, backend
        end

        # The backend that gives messages their offsets; nil: the memory of this server, or of this process.
        # @return [Backend, nil]
        def backend = @named_backend || @backend || (backend_of_environment unless History.open?)

        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position
        def publish(topic, data)
          return publish_here(topic, data) if @socket.nil? && (backend || History.open?)

          @publisher.call(@socket || socket_of_environment, topic, data)
        end

        # Publishes to the backend, or to subscribers of this process, and of those that share its memory.
        # @param (see publish)
        # @return (see publish)
        def publish_here(topic, data) = (backend || History).publish(topic, data)

        private

        # For jobs, and for applications under other servers.
        def backend_of_environment
          url = ENV.fetch("HEDDLE_PUBSUB", nil)
          return if [nil, "", "memory"].include?(url) || url.start_with?("unix:")

          @backend = Backend.new(url)
        rescue ArgumentError => e
          raise ArgumentError, "HEDDLE_PUBSUB: #{e.message}"
        end

        def socket_of_environment
          address = ENV.fetch("HEDDLE_PUBSUB", nil)
          address if address&.start_with?("unix:")
        end
      end
    end
  end
end
