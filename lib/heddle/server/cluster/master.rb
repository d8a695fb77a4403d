# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The process that opens the sockets, and starts and watches all other processes. It loads nothing of the
      # application. The mold loads the application, and workers are forked from the mold. The master has no event loop,
      # so that it can fork at any moment.
      #
      #     Master.new(configuration, log:, load: -> { application }, inheritance:) { |urls, details| puts "ready" }.run
      class Master
        include MonotonicClock

        # Seconds between two checks of the workers.
        POLL_INTERVAL = 1
        # Seconds until workers that must stop at once are killed.
        FORCED_STOP_TIMEOUT = 2
        private_constant :POLL_INTERVAL, :FORCED_STOP_TIMEOUT

        # @return [Fleet]
        attr_reader :fleet
        # @return [SharedResources]
        attr_reader :resources
        # @return [MemoryGuard]
        attr_reader :memory
        # @return [SolidQueueHandle] the process that the option `solid_queue` starts
        attr_reader :jobs
        # @return [WorkingFolder] the application's folder
        attr_reader :folder
        # @return [ProtectionSwitch]
        attr_reader :protection
        # @return [Control::Cluster, nil] answers the requests of `heddle status` and the like, on a thread of its own;
        #   nil: not set yet
        attr_accessor :control

        # @param configuration [Configuration]
        # @param log [Log]
        # @param load [#call] called in the mold to load the application; returns it, or raises BootError
        # @param inheritance [Inheritance] the resources of the master that this one replaces
        # @yield once, when all workers serve
        # @yieldparam urls [Array<String>] the server's URLs
        # @yieldparam details [Hash{Symbol => String}] see {BootDetails#summary}
        def initialize(configuration, log:, load:, inheritance:, &announce)
          @log = log
          @inheritance = inheritance
          @announce = announce
          @watched = {}
          @boot_details = BootDetails.new
          @protection = ProtectionSwitch.new(log, method(:now))
          @systemd = Systemd.new(self)
          @mold_spawner = MoldSpawner.new(load, method(:now))
          @folder = WorkingFolder.new
          @jobs = SolidQueueHandle.new(log)
          @mold_supervisor = MoldSupervisor.new(self, @mold_spawner, @systemd, configuration, log)
          @restart = MasterRestart.new(self, inheritance, log)
          @stopping = @failure = nil
        end

        # Serves until the server must stop, for example because of a signal, or until a new master has taken over.
        # @yield when the sockets are open, and this process has switched to the user of the option `user`
        # @return [Boolean] whether every request was answered
        # @raise [BootError]
        def run
          open
          yield if block_given?
          # Loaded now, because a deployment may remove the files while this process runs.
          Autoloads.load_constants(Cluster, Control, Log, Metrics)
          @mold_supervisor.load_first
          process_events until finished?
          raise BootError, @failure if @failure

          !fleet.unclean?
        ensure
          close
        end

        # @return [Configuration] the configuration of the newest mold
        def configuration = @mold_supervisor.configuration

        # @return [Boolean] whether the server is stopping
        def stopping? = !@stopping.nil?

        # Calls the block each time that `io` is readable.
        # @param io [IO]
        # @yield must not block
        # @return [void]
        def watch(io, &block) = @watched[io] = block

        # Replaces the workers one by one with workers that run the new code.
        # @yield when the reload has ended
        # @yieldparam problem [String, nil] why the old workers were kept; nil: they were replaced
        # @return [void]
        def reload(&done)
          refuse(:reload_failed, &done) or @mold_supervisor.reload(&done)
        end

        # Starts a new master, which loads all code again and serves the same sockets.
        # @yield when the restart has ended
        # @yieldparam problem [String, nil] why this master was kept; nil: the new one serves
        # @return [void]
        def restart(&done)
          return if refuse(:restart_failed, &done)

          @mold_supervisor.abandon("a new master takes over")
          @restart.start(&done)
        end

        # Switches the protections of all present and future workers.
        # @param on [Boolean]
        # @return [void]
        def protect(on) = protection.switch(on, fleet.workers)

        # @param size [Integer] how many workers should run; a number below 1 is ignored
        # @return [void]
        def resize(size)
          return if @stopping || size < 1

          fleet.resize(size)
          @log.event(:workers_resized, workers: fleet.size)
        end

        # @param now [Boolean] whether to cancel running requests at once
        # @param replaced [Boolean] whether a new master serves the same sockets from now on
        # @return [void]
        def stop(now: false, replaced: false)
          @mold_supervisor.abandon("the server is stopping")
          @restart.abandon unless replaced || stopping?
          @systemd.stopping(replaced ? @restart.new_master.pid : nil)
          @stopping = if replaced then @restart.new_master.handoff_incompatible? ? "part" : "leave"
                      else "stop"
                      end
          @stopping = "now" if now
          replaced ? resources.release_listeners : resources.stop_listening
          @jobs.retire
          # Workers that are not forked yet end with their mold. They are retired before that, so that the log does not
          # report their end as unexpected.
          fleet.workers.each { |worker| fleet.retire(worker, @stopping) unless worker.pid }
          @mold_supervisor.stop
          # Until the last process closes the socket, the kernel queues new connections, and only a worker accepts them.
          # So the molds, which have the socket open, too, must end first.
          retire_workers if @mold_spawner.empty? || now
        end

        # Called in a mold, right after the fork. Closes the resources that only the master uses.
        # @return [void]
        def close_in_child
          @signals.close_in_child
          fleet.workers.each { |worker| worker.channel.close }
          @jobs.close_in_child
          @watched.each_key(&:close)
          control&.close_in_child
          @restart.new_master&.close
          @inheritance.close
        end

        private

        def open
          FileSizeLimit.make_writes_fail
          DescriptorLimit.lift(ConnectionLimit.descriptors(configuration))
          adopting = Native::Processes.adopt_orphans
          raise BootError, "worker processes need Linux for now: run with --workers 0" unless adopting

          @resources = SharedResources.new(configuration, @inheritance, @log)
          @fleet = Fleet.new(configuration.worker_count, resources.scoreboard, @log, method(:now), protection:)
          open_checks
          @signals = Signals.new(self, @log)
          @checked_at = now
          Process.setproctitle("heddle: master")
        end

        def open_checks
          @overdue_workers = OverdueWorkers.new(fleet, @log, method(:now))
          @memory = MemoryGuard.new(fleet, @log, method(:now), budget: -> { configuration.memory_budget },
                                                               others: method(:other_processes)) do |bytes|
            resources.scoreboard.memory = bytes
          end
          @worker_lifetime = WorkerLifetime.new(fleet, resources.scoreboard, @log, method(:now))
          @reserve_demand = ReserveDemand.new(fleet, resources.scoreboard, @log, method(:now), memory:)
          watch(resources.alarm) { read_alarm } if resources.alarm
          @restart_file = RestartFile.new(folder.path)
        end

        def read_alarm
          @reserve_demand.record_stall if resources.alarm.read_nonblock(8, exception: false).is_a?(String)
        end

        # -- events ---------------------------------------------------------------------------------------------------

        def process_events
          wait_for_events
          @signals.handle
          read_messages
          @restart.check
          reap_children
          advance
        end

        def wait_for_events
          open = fleet.workers.reject(&:channel_closed) + @mold_spawner.reject(&:channel_closed?)
          channels = open.map { |one| one.channel.io }
          others = [@signals.io, *@watched.keys, @restart.new_master&.io].compact
          ready, = IO.select(channels + others, nil, nil, wait_timeout)
          (ready || []).each { |io| @watched[io]&.call }
        end

        def wait_timeout
          [[@checked_at + POLL_INTERVAL, @next_start_at, @systemd.next_watchdog_at].compact.min - now, 0].max
        end

        def read_messages
          @mold_supervisor.read_messages
          fleet.workers.each { |worker| read_messages_of(worker) unless worker.channel_closed }
        end

        def read_messages_of(worker)
          open = worker.channel.receive_all(worker.name, @log) do |message|
            worker.last_message_at = now
            handle_message(worker, message)
          end
          fleet.handle_closed_channel(worker) { @mold_supervisor.read_messages } unless open
        end

        def handle_message(worker, message)
          case message.what
          when "ready"
            @boot_details.add(worker, message)
            fleet.mark_ready(worker)
          when "failed" then worker.error = message.fetch("message", String)
          when "running_requests" then @overdue_workers.handle_report(worker, message.values["running"])
          when "stopped_accepting" then worker.accepting = false
          when "totals" then worker.totals = Fleet::TOTALS.to_h { |name| [name, message.fetch(name.to_s, Integer)] }
          when "stop_request"
            # Only this worker has received the signal TERM. The other workers keep serving, unless the master stops,
            # too.
            fleet.retire(worker, @stopping || "leave") unless worker.ending?
          end
        end

        # @return [Boolean] true: no reload or restart can begin now
        def refuse(event)
          reason = @stopping ? "the server is stopping" : ("a new master is being started" if @restart.running?)
          return false unless reason

          @log.event(event, reason:)
          yield reason if block_given?
          true
        end

        def reap_children
          while (pid, status = Process.waitpid2(-1, Process::WNOHANG))
            mold = @mold_spawner.find { |one| one.pid == pid }
            if mold then handle_mold_exit(mold, status)
            elsif pid == @restart.new_master&.pid then @restart.new_master.mark_ended
            elsif @jobs.running? && !(unexpected = @jobs.handle_exit(pid)).nil? then stop if unexpected && !@stopping
            else
              read_messages # the worker's last message may say why it has failed
              fleet.handle_exit(pid, status)
            end
          end
        rescue Errno::ECHILD
          nil
        end

        def handle_mold_exit(mold, status)
          @mold_supervisor.handle_exit(mold, status)
          fleet.remove_unforked(mold)
          retire_workers if @stopping && @mold_spawner.empty?
        end

        # -- reactions ------------------------------------------------------------------------------------------------

        def advance
          @next_start_at = nil
          @systemd.send_watchdog(now)
          run_periodic_checks if now >= @checked_at + POLL_INTERVAL
          @jobs.kill_late
          return kill_late_workers if @stopping

          @mold_supervisor.advance
          @reserve_demand.check
          @next_start_at = [fleet.start_missing, @mold_supervisor.next_attempt_at].compact.min
          @failure = @mold_supervisor.failure || fleet.failure
          report_ready if @announce && fleet.complete?
          @jobs.follow(fleet.mold) unless @announce || @mold_supervisor.reloading?
        end

        def run_periodic_checks
          @checked_at = now
          @overdue_workers.check
          memory.check unless @stopping
          @worker_lifetime.check unless @stopping || @restart.running?
          resources.renew_ticket_keys
          resources.refresh_certificates unless @stopping
          @mold_supervisor.refork unless @stopping || @restart.running?
          reload if @restart_file.touched? && !@stopping
        end

        def other_processes = [Process.pid, *@mold_spawner.filter_map(&:pid), *@jobs.pid]

        def report_ready
          @systemd.ready
          @announce.call(resources.urls, @boot_details.summary(configuration, fleet.size))
          @announce = nil
          Listeners.new(resources.listeners).report_trust(configuration, @log)
          @inheritance.report_ready
          configuration.hooks.run_safely(:on_booted, @log)
          Process.warmup # returns unused memory to the system; from now on the master allocates little
        end

        def retire_workers
          @deadline = now + FORCED_STOP_TIMEOUT if @stopping == "now"
          fleet.workers.each { |worker| fleet.retire(worker, @stopping) }
        end

        def kill_late_workers
          return unless @deadline && now > @deadline

          @deadline = nil
          fleet.workers.each { |worker| worker.kill("it was told to stop at once") }
          @jobs.kill
        end

        def finished?
          @failure || (@stopping && fleet.empty? && @mold_spawner.empty? && !@jobs.running? && !@restart.abandoning?)
        end

        def close
          @jobs.kill
          @mold_spawner.kill_all
          fleet&.workers&.each { |worker| worker.kill("it was told to stop at once") }
          resources&.close
          @signals&.close
          @restart.close
        end
      end
    end
  end
end
