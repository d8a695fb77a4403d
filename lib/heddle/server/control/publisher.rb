# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Publishes for a process that belongs to no server.
      module Publisher
        # Replaces the advice of {Client}, which is for a command line.
        ADVICE = "Set Heddle::PubSub.server to the server's control socket, \"unix:path\"; to a backend's address, " \
                 "which HEDDLE_PUBSUB may also name; or to :process, for the subscribers of this process alone"
        private_constant :ADVICE

        # @param socket [String, nil] the server's control socket; nil: the default one of this folder
        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position
        # @raise [PubSub::UnreachableError]
        # @raise [ArgumentError] when the message is too large
        def self.publish(socket, topic, data)
          address = socket ? Address.parse(socket) : Address.new(path: Address.default_path)
          Client.new(address).publish(topic, data)
        rescue Client::NotRunningError
          raise PubSub::UnreachableError,
                "the message was not published: no server answers at #{address}. #{ADVICE}", cause: nil
        rescue Client::TooLargeError => e
          raise ArgumentError, e.message
        rescue Client::NoServerError, Client::DeclinedError => e
          raise PubSub::UnreachableError, "the message was not published: #{e.message}"
        end
      end
    end
  end
end
