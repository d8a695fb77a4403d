# frozen_string_literal: true

module Heddle
  module PubSub
    # Determines where this process publishes: to a backend, its own memory, or a server's socket.
    #
    # @api private
    module Route
      class << self
        # @see PubSub.server
        attr_reader :server

        # @return [Backend, nil] the backend of this process's server
        attr_writer :backend

        # @return [#call] publishes for a process that belongs to no server. It takes three arguments: the address of a
        #   server's control socket (nil: the default one for the current folder), the topic and the message.
        #   runtime.rb sets it.
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

        # @return [Backend, nil] the backend that assigns offsets; nil: this server or process assigns them
        def backend = @named_backend || @backend || (backend_of_environment unless History.open?)

        # Publishes a message.
        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position
        def publish(topic, data)
          return publish_here(topic, data) if @socket.nil? && (backend || History.open?)

          @publisher.call(@socket || socket_of_environment, topic, data)
        end

        # Publishes to the backend, or to the subscribers of all processes that share this memory.
        # @param (see publish)
        # @return (see publish)
        def publish_here(topic, data) = (backend || History).publish(topic, data)

        private

        # The variable HEDDLE_PUBSUB names the backend for job processes, and for applications under other servers.
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
