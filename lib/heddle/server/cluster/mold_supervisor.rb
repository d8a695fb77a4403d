# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Keeps a mold with the newest code running. A mold is the process that has loaded the application, and that
      # workers are forked from. This class starts the first mold, a new one for each reload, and another one when the
      # mold has died. It also has a worker fork a mold (option `refork_after`).
      class MoldSupervisor
        include MonotonicClock

        # A mold that has not loaded the application after this many seconds is killed, unless `worker_timeout` is 0.
        LOAD_TIMEOUT = 600
        private_constant :LOAD_TIMEOUT

        # @return [Configuration] the configuration of the newest mold
        attr_reader :configuration
        # @return [String, nil] the reason why the server must stop: there are no workers, and the application can't be
        #   loaded; nil: no reason to stop
        attr_reader :failure
        # @return [Float, nil] the time at which {#advance} must load the application again; nil: no load is due
        attr_reader :next_attempt_at

        # @param master [Master]
        # @param mold_spawner [MoldSpawner]
        # @param systemd [Systemd]
        # @param configuration [Configuration]
        # @param log [#event]
        def initialize(master, mold_spawner, systemd, configuration, log)
          @master = master
          @mold_spawner = mold_spawner
          @systemd = systemd
          @configuration = configuration
          @log = log
          @backoff = Backoff.new
          @reload = @reload_pending = @done = @next_attempt_at = @failure = nil
          @stopped = false
        end

        # Starts the first mold.
        # @return [void]
        # @raise [BootError] when the process can't be forked
        def load_first
          start_mold(configuration)
        rescue SystemCallError => e
          raise BootError, "the process that loads the application can't be forked: #{e.message}"
        end

        # Replaces the workers one by one with workers that run the new code. If a reload is already running, this one
        # begins after it.
        # @yield when the reload has ended
        # @yieldparam problem [String, nil] why the old workers were kept; nil: they were replaced
        # @return [void]
        def reload(&done)
          return (@reload_pending ||= []).push(*done) if @reload

          @done = done
          @systemd.reloading
          folder.enter
          newer = configuration.reload
          newer.check_selector
          newer.web_socket_origins
          fixed = configuration.needing_restart(newer)
          @log.event(:options_need_restart, options: fixed) if fixed.any?
          resources.renew_tls(newer, @log)
          mold = start_mold(newer)
          @reload = RollingRestart.new(fleet, mold, @log) { |former, problem| finish_reload(former, problem) }
        rescue ConfigurationError, BootError, SystemCallError => e
          [folder, resources].each(&:roll_back)
          problem = ErrorText.one_line(e.message)
          @log.event(:reload_failed, reason: problem)
          report_reload(problem)
        end

        # Asks a worker that has served enough requests (option `refork_after`) to fork the new mold, and replaces all
        # workers with workers that this mold forks.
        # @return [void]
        def refork
          return if @reload || @stopped

          worker = refork_candidate or return
          worker.mold.warm = true # before the attempt, so that a failed one is not repeated
          mold = @mold_spawner.promote_worker(worker)
          mold.warm = true
          @reload = RollingRestart.new(fleet, mold, @log, name: :refork) { |former| finish_reload(former) }
          fleet.start(worker.index, replaces: worker) or @reload.abandon("no worker can be started now")
        rescue SystemCallError => e
          @log.event(:refork_failed, reason: ErrorText.one_line(e.message))
        end

        # Ends a running reload.
        # @param reason [String]
        # @return [void]
        def abandon(reason) = @reload&.abandon(reason)

        # Kills all molds. From now on no mold is started.
        # @return [void]
        def stop
          @stopped = true
          @reload_pending&.each { |done| done.call("the server is stopping") }
          @mold_spawner.kill_all
        end

        # Reads and handles the molds' messages.
        # @return [void]
        def read_messages = @mold_spawner.each { |mold| read_messages_of(mold) unless mold.channel_closed? }

        # Handles the end of a mold.
        # @param mold [MoldHandle]
        # @param status [Process::Status]
        # @return [void]
        def handle_exit(mold, status)
          read_messages_of(mold) unless mold.channel_closed?
          @mold_spawner.remove(mold)
          fleet.mold = nil if fleet.mold.equal?(mold)
          return if @stopped || mold.state == :ending

          mold.state == :loading ? handle_failed_load(mold, status) : handle_death(mold, status)
        end

        # @return [Boolean] whether workers are being replaced
        def reloading? = !@reload.nil?

        # Continues a reload. Kills a mold that takes too long to load the application. When the delay after the failure
        # of a mold has passed, starts a new mold.
        # @return [void]
        def advance
          @mold_spawner.each { |mold| kill_overdue(mold) }
          @reload&.advance
          start_pending_reload if @reload_pending && !@reload
          load_now if next_attempt_at && now >= next_attempt_at
        end

        private

        def fleet = @master.fleet

        def resources = @master.resources

        def folder = @master.folder

        # @return [MoldHandle] a mold, which begins to load the application
        # @raise [SystemCallError]
        def start_mold(configuration)
          setting = Worker::Setting.new(configuration:, log: @log, resources:)
          @mold_spawner.fork_mold(setting) { @master.close_in_child }
        end

        # Returns the worker that has served the most requests, if it can fork the new mold: it has served at least
        # `refork_after` requests, and was forked from the current mold, which is not warm yet. The workers of the new
        # mold share what these requests have left in memory, such as caches, compiled templates and Ruby's inline
        # caches. Otherwise each worker fills its own copies.
        def refork_candidate
          mold = fleet.mold
          return if mold.nil? || mold.warm || !mold.ready? || !fleet.complete?

          wanted = mold.configuration.refork_after
          return if wanted.zero?

          requests = ->(worker) { resources.scoreboard.read(worker.slot)&.fetch(:requests) || 0 }
          busiest = fleet.serving.reject(&:reserve?).max_by(&requests)
          busiest if requests.call(busiest) >= wanted && busiest.mold.equal?(mold)
        end

        def read_messages_of(mold)
          open = mold.channel.receive_all("the mold (pid #{mold.pid})", @log) do |message|
            handle_message(mold, message)
          end
          handle_closed_channel(mold) unless open
        end

        # If a worker was asked to fork a mold, the mold's handle has no pid until the mold is ready. If the channel
        # closes before that, the mold was not forked, or has ended.
        def handle_closed_channel(mold)
          mold.channel.close
          return if mold.pid

          @mold_spawner.remove(mold)
          @reload.abandon("the mold that a worker was to fork has not become ready") if @reload&.mold.equal?(mold)
        end

        def handle_message(mold, message)
          case message.what
          when "ready"
            mold.pid = pid_of(message)
            fit_memory(mold, message.fetch("workers", Integer))
            mark_ready(mold)
          when "failed" then mold.failure = message.fetch("message", String)
          when "spawned" then fleet.record_spawn(message.fetch("slot", Integer), pid_of(message))
          when "jobs_spawned" then @master.jobs.record_spawn(pid_of(message))
          when "jobs_spawn_failed" then @master.jobs.record_failed_spawn(message.fetch("message", String))
          when "spawn_failed"
            fleet.record_failed_spawn(message.fetch("slot", Integer), message.fetch("message", String))
          end
        end

        # The mold has computed the number of workers from the memory that the application needs.
        def fit_memory(mold, workers)
          return unless mold.configuration.workers == :auto

          mold.configuration = mold.configuration.with_workers(workers.clamp(1, mold.configuration.worker_count))
          fleet.resize(mold.configuration.worker_count) if fleet.empty?
        end

        # A signal to 0 or to a negative number would go to a process group. A signal to 1 would go to init.
        def pid_of(message)
          pid = message.fetch("pid", Integer)
          pid > 1 ? pid : raise(MessageSocket::MalformedError, "the process id #{pid} is not greater than 1")
        end

        def mark_ready(mold)
          return if mold.state == :ending

          mold.state = :ready
          return if @reload&.mold.equal?(mold)
          return @mold_spawner.kill(mold) if fleet.mold # a reload has started another one meanwhile

          fleet.mold = mold
        end

        # Called when a mold has ended before it had loaded the application.
        def handle_failed_load(mold, status)
          reason = mold.failure || "the process that loads the application has ended: #{ExitReason.describe(status)}"
          if @reload&.mold.equal?(mold)
            @reload.abandon(ErrorText.one_line(reason))
          elsif fleet.empty?
            @failure = reason
          else
            load_later(now - mold.started_at, :load_failed, reason: ErrorText.one_line(reason))
          end
        end

        def handle_death(mold, status)
          reason = mold.failure || ExitReason.describe(status)
          @reload.abandon("the mold has ended: #{reason}") if @reload&.mold.equal?(mold)
          load_later(now - mold.started_at, :mold_ended, pid: mold.pid, reason:)
        end

        # A worker forks a mold without a pid after its last requests, which may take as long as they need.
        def kill_overdue(mold)
          return unless mold.pid && mold.state == :loading && mold.configuration.worker_timeout.positive?

          mold.kill_stuck("loading the application took longer than #{LOAD_TIMEOUT} s") if
            now - mold.started_at > LOAD_TIMEOUT
        end

        # @param seconds [Numeric] how long the previous mold has run
        def load_later(seconds, event, **fields)
          return if fleet.mold

          delay = @backoff.record_failure(now, seconds)
          @log.event(event, **fields, delay:)
          @next_attempt_at = now + delay
        end

        def load_now
          @next_attempt_at = nil
          start_mold(configuration) unless fleet.mold
        rescue SystemCallError => e
          load_later(0, :load_failed, reason: e.message)
        end

        def start_pending_reload
          waiting, @reload_pending = @reload_pending, nil
          @master.reload { |problem| waiting.each { |done| done.call(problem) } }
        end

        def finish_reload(former, problem = nil)
          newest = fleet.mold&.configuration
          @configuration = newest if newest
          [folder, resources].each(&(fleet.mold.equal?(@reload.mold) ? :commit : :roll_back))
          @mold_spawner.kill(former) if former
          @reload = nil
          report_reload(problem && ErrorText.one_line(problem))
        end

        def report_reload(problem)
          @systemd.reloaded(problem)
          done, @done = @done, nil
          done&.call(problem)
        end
      end
    end
  end
end
