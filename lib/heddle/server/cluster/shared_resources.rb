# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The resources that all processes of a server share: the listening sockets with their certificates and the keys
      # of TLS session tickets, the memory of pub/sub, the scoreboard (shared memory with the load of each worker), and
      # the socket pair over which workers hand off connections. They are created before the first fork, or inherited
      # from an old master.
      class SharedResources
        # Number of slots of the scoreboard for each process: one for itself, one for its replacement during a reload,
        # and two for former ones that have not ended yet.
        SLOTS_A_PROCESS = 4
        # Minimum number of slots, so that a reload or the signal TTIN can add workers. Unused slots use no memory.
        MIN_SLOTS = 256
        private_constant :SLOTS_A_PROCESS, :MIN_SLOTS

        # @return [Hash{String => Array<Listener>}] the listeners of each address, by the address's key, which is the
        #   same in all processes ({TCPBind#key})
        attr_reader :listeners_by_key
        # @return [Net::Scoreboard]
        attr_reader :scoreboard
        # @return [IO, nil] readable when a worker of this master has been stuck for 100 ms; nil: the system has no
        #   eventfd
        attr_reader :alarm
        # @return [BasicSocket] the end of the socket pair to which workers write the connections that they hand off
        attr_reader :handoff_sender
        # @return [BasicSocket] the end from which workers receive these connections
        attr_reader :handoff_receiver

        # @param configuration [Configuration]
        # @param inheritance [Inheritance]
        # @param log [Log]
        # @raise [BootError]
        def initialize(configuration, inheritance, log)
          @listeners_by_key = {}
          @inheritance = inheritance
          @tls = {}
          @former_tls = nil
          inheritance.adopt_ticket_keys
          InheritedSocket.from_old_master = inheritance.sockets?("systemd:")
          configuration.check_selector
          configuration.web_socket_origins
          binds_by_key(configuration).each do |key, bind|
            @listeners_by_key[key] = bind.open(report: log.method(:event), open: inheritance.sockets(key))
            @tls[key] = bind.tls
          end
          User.become(configuration)
          log.event(:temporary_folder_missing) unless TemporaryFolder.find
          share(listeners.map(&:tls))
          inheritance.close_unused
          inheritance.adopt_pubsub
          configuration.open_pubsub(log.method(:event))
          @scoreboard = open_scoreboard(inheritance, configuration.worker_count + configuration.reserve_count)
          @alarm = @scoreboard.alarm_descriptor&.then { |fd| IO.for_fd(fd, autoclose: false).dup }
          @handoff_sender, @handoff_receiver = inheritance.handoff_sockets || UNIXSocket.pair(:SEQPACKET)
        rescue BootError
          close_listeners
          raise
        end

        # @return [Array<Listener>]
        def listeners = listeners_by_key.values.flatten

        # @return [Array<String>] the server's URLs
        def urls = listeners.map(&:url).uniq

        # Loads the TLS settings for a reload: reads the files of all certificates again, and applies the changed
        # settings of addresses. The caller must call {#commit} or {#roll_back} afterwards.
        # @param configuration [Configuration]
        # @param log [Log]
        # @return [void]
        # @raise [BootError] if a file or a setting is wrong; nothing is changed then
        def renew_tls(configuration, log)
          binds = binds_by_key(configuration).select { |key, bind| @tls[key] && bind.tls }
          changed, kept = binds.partition { |key, bind| bind.tls != @tls[key] }.map(&:to_h)
          loaded = read_again(listeners_by_key.values_at(*kept.keys).flatten)
          acceptors = changed.transform_values { |bind| bind.acceptor(log.method(:event)) }
          share(acceptors.values)
          loaded.each { |certificates, files| certificates.use(files) }
          replace_tls(acceptors, changed.transform_values(&:tls))
        end

        # Called when the workers of a reload serve. Keeps the changes.
        # @return [void]
        def commit = @former_tls = nil

        # Called when a reload has failed. Restores the former settings, with which the old workers keep serving.
        # @return [void]
        def roll_back
          replace_tls(*@former_tls) if @former_tls
          @former_tls = nil
        end

        # Reads certificates whose files have changed. Called about every second.
        # @return [void]
        def refresh_certificates
          certificates.each(&:refresh)
        end

        # @return [Array<Net::TLS::Certificates>]
        def certificates = certificates_of(listeners)

        # @return [Integer, nil] the descriptor of the shared memory with the keys of TLS session tickets, for a new
        #   master; nil: no address uses TLS
        def ticket_keys_descriptor = tls? ? Net::TLS::TicketKeys.descriptor : nil

        # @return [Array(Integer, Integer), nil] the descriptors of the shared memory with pub/sub messages and of its
        #   eventfd, for a new master; nil: there is none, or only forked processes can share it
        def pubsub_descriptors = PubSub::History.descriptors

        # Replaces old keys of TLS session tickets. Called about every second.
        # @return [void]
        def renew_ticket_keys
          Net::TLS::TicketKeys.renew if tls?
        end

        # Closes the listening sockets in this process. Workers may accept connections for a while, so the files of unix
        # sockets remain until {#close}.
        # @return [void]
        def stop_listening = listeners.each { |listener| listener.io.close }

        # Closes the listeners. Also removes the files of unix sockets, unless an old master still serves them.
        # @return [void]
        def close_listeners
          return release_listeners if @inheritance.pending?

          listeners.each(&:close)
          listeners_by_key.clear
        end

        # Closes the listeners in this process only, and keeps the files of unix sockets, because other processes serve
        # them.
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

        # Uses the old master's scoreboard. Creates a new one if there is no old one, or if that is too small for this
        # many processes.
        def open_scoreboard(inheritance, processes)
          inherited = inheritance.scoreboard
          return inherited if inherited && inherited.slots >= processes * 2

          Net::Scoreboard.new((processes * SLOTS_A_PROCESS).clamp(MIN_SLOTS, Net::Scoreboard::MAX_SLOTS))
        end

        # Addresses with port 0 (the system chooses the port) have the same key. So a number is appended to the second
        # and later ones.
        def binds_by_key(configuration)
          counts = Hash.new(0)
          configuration.binds.to_h do |bind|
            count = counts[bind.key] += 1
            [count == 1 ? bind.key : "#{bind.key} #{count}", bind]
          end
        end

        def read_again(listeners)
          certificates_of(listeners).to_h { |one| [one, one.load] }
        rescue Net::TLS::Error => e
          raise BootError, e.message
        end

        def certificates_of(listeners) = listeners.filter_map { |one| one.tls&.certificates }.uniq

        def share(acceptors) = acceptors.compact.uniq.each { |acceptor| acceptor.certificates.share }

        # @param acceptors [Hash{String => Net::TLS}] new acceptors, by the address's key
        # @param settings [Hash{String => TLSSettings}]
        def replace_tls(acceptors, settings)
          former = acceptors.keys.to_h { |key| [key, listeners_by_key.fetch(key).first.tls] }
          @former_tls = [former, @tls.slice(*acceptors.keys)]
          acceptors.each { |key, acceptor| listeners_by_key.fetch(key).each { |listener| listener.tls = acceptor } }
          @tls.merge!(settings)
        end

        def tls? = @tls.each_value.any?
      end
    end
  end
end
