# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Publishes pub/sub messages from a process that does not belong to a server, over a server's control socket.
      module Publisher
        # Replaces the advice of {Client}, which is for users of the command line.
        ADVICE = "Set Heddle::PubSub.server to the server's control socket (\"unix:path\"), to a backend's address " \
                 "(also possible with HEDDLE_PUBSUB), or to :process to reach only subscribers in this process"
        private_constant :ADVICE

        # @param socket [String, nil] the address of the server's control socket; nil: the default one for the current
        #   folder
        # @param topic [String]
        # @param data [String]
        # @return [String] the message's position in the pub/sub history
        # @raise [PubSub::UnreachableError]
        # @raise [ArgumentError] when the message is too large
        def self.publish(socket, topic, data)
          address = socket ? Address.parse(socket) : Address.new(path: Address.default_path)
          Client.new(address).publish(topic, data)
        rescue Client::NotRunningError
          raise PubSub::UnreachableError,
                "the message was not published: no server listens on #{address}. #{ADVICE}", cause: nil
        rescue Client::TooLargeError => e
          raise ArgumentError, e.message
        rescue Client::NoServerError, Client::DeclinedError => e
          raise PubSub::UnreachableError, "the message may not have been published: #{e.message}"
        end
      end
    end
  end
end
