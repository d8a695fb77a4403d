# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    module Cluster
      # The resources that all processes of a server share: the sockets, the scoreboard, and the socket pair of the
      # handoff. They are made before the first fork, or taken over from another master.
      class SharedResources
        # Slots of the scoreboard for each process: a reload has its successor, and others may not have ended yet.
        SLOTS_A_PROCESS = 4
        # Slots at least, for more workers after a reload or TTIN; memory that no worker has used costs nothing.
        MIN_SLOTS = 256
        private_constant :SLOTS_A_PROCESS, :MIN_SLOTS

        # @return [Hash{String => Array<Listener>}] by address, as {Bind#key} names it in every process
        attr_reader :listeners_by_key
        # @return [Net::Scoreboard]
        attr_reader :scoreboard
        # @return [BasicSocket] the end of the handoff's socket pair that workers send connections to
        attr_reader :handoff_sender
        # @return [BasicSocket] the end from which workers receive connections
        attr_reader :handoff_receiver

        # @param configuration [Configuration]
        # @param inheritance [Inheritance]
        # @param log [Log]
        # @raise [BootError]
        def initialize(configuration, inheritance, log)
          @listeners_by_key = {}
          @tls = {}
          inheritance.adopt_ticket_keys
          Inherited.handed_on = inheritance.sockets?("systemd:")
          configuration.check_selector
          configuration.check_body_folder(log.method(:notice))
          configuration.web_socket_origins
          binds_by_key(configuration).each do |key, bind|
            @listeners_by_key[key] = bind.open(configuration.backlog, notice: log.method(:notice),
                                                                      open: inheritance.sockets(key))
            @tls[key] = bind.tls
          end
          inheritance.close_unused
          inheritance.adopt_pubsub
          configuration.open_pubsub(log.method(:notice))
          @scoreboard = open_scoreboard(inheritance, configuration.worker_count + configuration.reserve_count)
          @handoff_sender, @handoff_receiver = inheritance.handoff_sockets || UNIXSocket.pair(:SEQPACKET)
        rescue BootError
          close_listeners
          raise
        end

        # @return [Array<Listener>]
        def listeners = listeners_by_key.values.flatten

        # @return [Array<String>] where the server is reached
        def urls = listeners.map(&:url).uniq

        # Renews the certificates that workers which are forked from now on use.
        # @param configuration [Configuration]
        # @param log [Log]
        # @return [void]
        # @raise [BootError] everything stays as it is
        def renew_tls(configuration, log)
          changed = binds_by_key(configuration).select { |key, bind| @tls[key] && bind.tls && bind.tls != @tls[key] }
          acceptors = changed.transform_values { |bind| bind.acceptor(log.method(:notice)) }
          acceptors.each do |key, acceptor|
            listeners_by_key.fetch(key, []).each { |listener| listener.tls = acceptor }
            @tls[key] = changed.fetch(key).tls
          end
        end

        # @return [Integer, nil] the descriptor of session tickets' keys, for another master
        def ticket_keys_descriptor = tls? ? Net::TLS::TicketKeys.descriptor : nil

        # @return [Array(Integer, Integer), nil] the descriptors of {PubSub}'s messages, for another master
        def pubsub_descriptors = PubSub::History.descriptors

        # Called every second or so.
        # @return [void]
        def renew_ticket_keys
          Net::TLS::Certificates.renew_ticket_keys if tls?
        end

        # @return [void]
        def close_listeners
          listeners.each(&:close)
          listeners_by_key.clear
        end

        # Closes the listeners of this process only: other processes serve their sockets.
        # @return [void]
        def release_listeners
          listeners.each(&:release)
          listeners_by_key.clear
        end

        # @return [void]
        def close
          close_listeners
          [handoff_sender, handoff_receiver].each(&:close)
        end

        private

        # A scoreboard that is too small for these processes stays with the former master's workers.
        def open_scoreboard(inheritance, processes)
          inherited = inheritance.scoreboard
          return inherited if inherited && inherited.slots >= processes * 2

          Net::Scoreboard.new((processes * SLOTS_A_PROCESS).clamp(MIN_SLOTS, Net::Scoreboard::MAX_SLOTS))
        end

        # Several addresses have the same key if the system chooses the port (0): each after the first gets a number.
        def binds_by_key(configuration)
          counts = Hash.new(0)
          configuration.binds.to_h do |bind|
            count = counts[bind.key] += 1
            [count == 1 ? bind.key : "#{bind.key} #{count}", bind]
          end
        end

        def tls? = @tls.each_value.any?
      end
    end
  end
end
