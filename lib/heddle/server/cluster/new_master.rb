# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The running master's record of the new master that {MasterRestart} starts: a process with the same command line
      # and sockets.
      class NewMaster
        # @return [Integer, nil] its process id; nil: it has ended
        attr_reader :pid
        # @return [IO] a pipe from it, readable when it has reported or has ended
        attr_reader :io
        # @return [String, nil] why it could not start, if it has reported that
        attr_reader :problem

        # Starts the process.
        # @param resources [SharedResources]
        # @param command [Array<String>] its command line
        # @param folder [WorkingFolder] the folder in which it is started
        # @raise [SystemCallError]
        def initialize(resources, command, folder)
          @io, writer = IO.pipe
          sockets = resources.listeners_by_key.transform_values { |all| all.map { |one| one.io.fileno } }
          pair = [resources.handoff_sender, resources.handoff_receiver].map(&:fileno)
          values = { listeners: sockets, pair:, ready: writer.fileno,
                     scoreboard: resources.scoreboard.descriptors, ticket_keys: resources.ticket_keys_descriptor,
                     pubsub: resources.pubsub_descriptors }
          passed = [sockets.values, values.except(:listeners).values].flatten.compact
          values[:handoff] = Net::Sockets::HANDOFF_VERSION
          # WATCHDOG_PID, which systemd has set, is the process id of this master. The new master has another id, so
          # with this variable it would send no watchdog notifications ({SystemdNotify}).
          environment = { Inheritance::VARIABLE => JSON.generate(values), "WATCHDOG_PID" => nil, **folder.variables }
          @pid = spawn(environment, *command, **passed.to_h { |fd| [fd, fd] }, chdir: folder.path)
        ensure
          writer&.close
        end

        # Reads the report of the new master, without blocking.
        # @return [Symbol] :ready: it serves; :failed: it could not start; :wait: it has not reported yet
        def poll
          text = @io.read_nonblock(Inheritance::REPORT_LIMIT, exception: false)
          return :wait if text == :wait_readable

          @handoff_incompatible = text == Inheritance::READY_WITHOUT_HANDOFF
          return :ready if text == Inheritance::READY || @handoff_incompatible

          @problem = text.dup.force_encoding(Encoding::UTF_8).scrub if text
          :failed
        end

        # @return [Boolean] whether its workers can't receive connections from the workers of this master
        def handoff_incompatible? = @handoff_incompatible

        # Records that the process has ended.
        # @return [void]
        def mark_ended = @pid = nil

        # @return [void]
        def close = @io.close
      end
    end
  end
end
