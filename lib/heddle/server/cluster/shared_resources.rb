# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The resources that all processes of a server share: the sockets with their certificates, the scoreboard, and the
      # socket pair of the handoff. They are made before the first fork, or inherited from another master.
      class SharedResources
        # Slots of the scoreboard for each process: for itself, for its successor during a reload, and for others that
        # have not ended yet.
        SLOTS_A_PROCESS = 4
        # The minimum, for more workers after a reload or TTIN; memory that no worker has used costs nothing.
        MIN_SLOTS = 256
        private_constant :SLOTS_A_PROCESS, :MIN_SLOTS

        # @return [Hash{String => Array<Listener>}] by address, as {Bind#key} names it in every process
        attr_reader :listeners_by_key
        # @return [Net::Scoreboard]
        attr_reader :scoreboard
        # @return [IO, nil] readable when a worker has been stuck for 100 ms; each master has its own
        attr_reader :alarm
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

        # @return [Array<String>] the server's addresses, for a person
        def urls = listeners.map(&:url).uniq

        # Reads the certificates for a reload: all files, and the changed settings of addresses. {#commit} or
        # {#roll_back} follows.
        # @param configuration [Configuration]
        # @param log [Log]
        # @return [void]
        # @raise [BootError] then nothing has changed
        def renew_tls(configuration, log)
          binds = binds_by_key(configuration).select { |key, bind| @tls[key] && bind.tls }
          changed, kept = binds.partition { |key, bind| bind.tls != @tls[key] }.map(&:to_h)
          loaded = read_again(listeners_by_key.values_at(*kept.keys).flatten)
          acceptors = changed.transform_values { |bind| bind.acceptor(log.method(:event)) }
          share(acceptors.values)
          loaded.each { |certificates, files| certificates.use(files) }
          replace_tls(acceptors, changed.transform_values(&:tls))
        end

        # Called when the workers of a reload serve: keeps the changes.
        # @return [void]
        def commit = @former_tls = nil

        # Called when a reload has failed. Workers of the former mold have the former settings, so this process restores
        # them, too.
        # @return [void]
        def roll_back
          replace_tls(*@former_tls) if @former_tls
          @former_tls = nil
        end

        # Reads certificates whose files have changed. Called every second or so.
        # @return [void]
        def refresh_certificates
          certificates.each(&:refresh)
        end

        # @return [Array<Net::TLS::Certificates>]
        def certificates = certificates_of(listeners)

        # @return [Integer, nil] the descriptor of session tickets' keys, for another master
        def ticket_keys_descriptor = tls? ? Net::TLS::TicketKeys.descriptor : nil

        # @return [Array(Integer, Integer), nil] the descriptors of {PubSub}'s messages, for another master
        def pubsub_descriptors = PubSub::History.descriptors

        # Called every second or so.
        # @return [void]
        def renew_ticket_keys
          Net::TLS::TicketKeys.renew if tls?
        end

        # Closes the sockets of this process. Workers may accept for a while, so the files of unix sockets stay until
        # {#close}.
        # @return [void]
        def stop_listening = listeners.each { |listener| listener.io.close }

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

        # If the former master's scoreboard is too small for these processes, makes a new one.
        def open_scoreboard(inheritance, processes)
          inherited = inheritance.scoreboard
          return inherited if inherited && inherited.slots >= processes * 2

          Net::Scoreboard.new((processes * SLOTS_A_PROCESS).clamp(MIN_SLOTS, Net::Scoreboard::MAX_SLOTS))
        end

        # Addresses whose port the system chooses (0) have the same key, so each one after the first gets a number.
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

        # @param acceptors [Hash{String => Net::TLS}] of some addresses
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
