# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    module Cluster
      # The resources that all processes of a server share: the sockets, the scoreboard, and the socket pair of the
      # handoff. They are made before the first fork, or taken over from another master.
      class Commons
        # How many workers may be on the scoreboard, those that have not ended yet included.
        SLOTS = 64
        private_constant :SLOTS

        # @return [Hash{String => Array<Listener>}] by what is the same for the same address in another process
        attr_reader :by_key
        # @return [Net::Scoreboard]
        attr_reader :scoreboard
        # @return [BasicSocket] where a worker that ends leaves its idle connections
        attr_reader :giving
        # @return [BasicSocket] where the others take them
        attr_reader :taking

        # @param configuration [Configuration]
        # @param inheritance [Inheritance]
        # @param log [Log]
        # @raise [BootError]
        def initialize(configuration, inheritance, log)
          @by_key = {}
          @tls = {}
          inheritance.adopt_ticket_keys
          Inherited.handed_on = inheritance.sockets?("systemd:")
          configuration.check_selector
          configuration.check_body_folder
          configuration.web_socket_origins
          binds_by_key(configuration).each do |key, bind|
            @by_key[key] = bind.open(configuration.backlog, notice: log.method(:notice), open: inheritance.sockets(key))
            @tls[key] = bind.tls
          end
          inheritance.close_rest
          inheritance.adopt_pubsub
          configuration.open_pubsub(log.method(:notice))
          processes = configuration.worker_count + configuration.reserve_count
          @scoreboard = inheritance.scoreboard || Net::Scoreboard.new([SLOTS, processes * 4].max)
          @giving, @taking = inheritance.pair || UNIXSocket.pair(:SEQPACKET)
        rescue BootError
          close_listeners
          raise
        end

        # @return [Array<Listener>]
        def listeners = by_key.values.flatten

        # @return [Array<String>] where the server is reached
        def urls = listeners.map(&:url).uniq

        # Workers that are forked from now on show their clients what this configuration says.
        # @param configuration [Configuration]
        # @param log [Log]
        # @return [void]
        # @raise [BootError] everything stays as it is
        def renew_tls(configuration, log)
          changed = binds_by_key(configuration).select { |key, bind| @tls[key] && bind.tls && bind.tls != @tls[key] }
          acceptors = changed.transform_values { |bind| bind.acceptor(log.method(:notice)) }
          acceptors.each do |key, acceptor|
            by_key.fetch(key, []).each { |listener| listener.tls = acceptor }
            @tls[key] = changed.fetch(key).tls
          end
        end

        # @return [Integer, nil] the descriptor of session tickets' keys, for another master
        def ticket_keys = speaks_tls? ? Net::TLS::TicketKeys.descriptor : nil

        # @return [Array(Integer, Integer), nil] the descriptors of {PubSub}'s messages, for another master
        def pubsub = PubSub::History.descriptors

        # Called every second or so.
        # @return [void]
        def renew_ticket_keys
          Net::TLS::Certificates.renew_ticket_keys if speaks_tls?
        end

        # @return [void]
        def close_listeners
          listeners.each(&:close)
          by_key.clear
        end

        # Other processes go on with them.
        # @return [void]
        def release_listeners
          listeners.each(&:release)
          by_key.clear
        end

        # @return [void]
        def close
          close_listeners
          [giving, taking].each(&:close)
        end

        private

        # Several addresses may have one key where the system chooses the port (0): each after the first has a number.
        def binds_by_key(configuration)
          counts = Hash.new(0)
          configuration.binds.to_h do |bind|
            count = counts[bind.key] += 1
            [count == 1 ? bind.key : "#{bind.key} #{count}", bind]
          end
        end

        def speaks_tls? = @tls.each_value.any?
      end
    end
  end
end
