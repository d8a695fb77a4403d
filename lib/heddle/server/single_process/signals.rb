# frozen_string_literal: true

module Heddle
  class Server
    module SingleProcess
      # Stops a server with a single process on INT, TERM, QUIT and HUP. It also handles the signals of commands that
      # need a master, and logs that they have no effect: by default, they would end the process in the middle of its
      # requests. Ruby allows few calls in a trap, so the trap only writes to a pipe, which a task reads.
      class Signals
        # The signals of commands that need a master.
        MASTER_ONLY = { "USR1" => "reload", "USR2" => "restart", "TTIN" => "start another worker",
                        "TTOU" => "stop a worker" }.freeze
        STOPPING = %w[INT TERM QUIT].freeze
        # Signals whose handler is kept if the application or nohup(1) has set one.
        YIELDING = ["HUP", *MASTER_ONLY.keys].freeze
        # Seconds between two checks of the restart file.
        POLL_INTERVAL = 1.0
        private_constant :MASTER_ONLY, :STOPPING, :YIELDING, :POLL_INTERVAL

        # A hint for a user who has pressed Ctrl-C.
        HINT = "Ctrl-C again stops at once"

        # @param server [Server]
        # @param log [Log]
        # @param stop_deadline [StopDeadline] started at the first signal that stops the server, and again, without
        #   time for running requests, at the second INT
        def initialize(server, log, stop_deadline)
          @server = server
          @log = log
          @stop_deadline = stop_deadline
        end

        # Sets the traps, and starts a task that handles the signals. When the task ends, it restores the former traps.
        # @return [Task] must be cancelled when the server has stopped
        def watch
          reader, writer = IO.pipe
          before = trap_signals(writer)
          Heddle.async(name: "signals", background: true) do
            Heddle.async(name: "restart file", background: true) { watch_restart_file }
            handle_signals(reader)
          ensure
            before.each { |name, handler| trap(name, handler || "DEFAULT") }
            reader.close
            writer.close
          end
        end

        private

        # @return [Hash{String => Object}] the former handlers of the signals that now have traps
        def trap_signals(writer)
          before = [*STOPPING, *YIELDING].to_h do |name|
            [name, OwnTrap.set(name) { writer.write_nonblock("#{name}\n", exception: false) }]
          end
          claimed = before.select { |name, handler| YIELDING.include?(name) && !free?(handler) }
          claimed.each { |name, handler| trap(name, handler) }
          before.except(*claimed.keys)
        end

        def free?(handler) = OwnTrap::FREE.include?(handler) || Scheduler::SignalGuard.stands_in?(handler)

        def handle_signals(reader)
          heard = 0
          stopping = false
          while (name = reader.gets(chomp: true))
            next refuse(name, MASTER_ONLY.fetch(name)) if MASTER_ONLY.key?(name)

            again = name == "INT" && (heard += 1) == 2
            next if stopping && !again # otherwise each signal would start the deadline again

            stopping = true
            report_stop(name, again)
            @server.stop(now: again)
            configuration = @server.configuration
            @stop_deadline.within(again ? 0 : configuration.drain_delay + configuration.stop_timeout)
          end
        end

        # `rails restart` and `rails dev:cache` touch the file. A single process can't reload the application, so it
        # only logs that the file has no effect.
        def watch_restart_file
          file = Cluster::RestartFile.new(WorkingFolder.started)
          loop do
            sleep(POLL_INTERVAL)
            refuse(Cluster::RestartFile::NAME, "reload") if file.touched?
          end
        end

        def refuse(signal, command) = @log.event(:signal_ignored, signal:, command:)

        def report_stop(name, again)
          return @log.event(:stop_now_requested, source: "SIG#{name}") if again

          @log.event(:stop_requested, source: "SIG#{name}", hint: (HINT if name == "INT"),
                                      drain_delay: @server.configuration.drain_time)
        end
      end
    end
  end
end
