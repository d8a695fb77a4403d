# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The process that owns the sockets and the restarts, and loads nothing of the application. It has no loop, so
      # that it can fork at any moment.
      #
      #     Master.new(configuration, log:, load: -> { application }) { |urls, facts| puts "ready" }.run
      class Master
        SIGNALS = %w[INT TERM HUP USR1 USR2 TTIN TTOU CHLD].freeze
        # Seconds between two looks at the workers.
        LOOK = 1
        # Seconds that workers may take to end at once.
        HURRY = 2
        private_constant :SIGNALS, :LOOK, :HURRY

        # @return [Fleet]
        attr_reader :fleet
        # @return [Commons]
        attr_reader :commons
        # @return [Configuration] that of the newest mold
        attr_reader :configuration
        # @return [Control::Cluster, nil] what answers operators, in a thread of its own
        attr_accessor :control

        # @param configuration [Configuration]
        # @param log [Log]
        # @param load [#call] gives the application, in the mold; raises BootError
        # @param inheritance [Inheritance] from the master that this one is to replace
        # @yieldparam urls [Array<String>]
        # @yieldparam facts [Hash{Symbol => String}] {Cluster.facts} of a worker
        def initialize(configuration, log:, load:, inheritance: Inheritance.none, &announce)
          @configuration = configuration
          @log = log
          @inheritance = inheritance
          @announce = announce
          @molds = Molds.new(load, method(:now))
          @watched = {}
          @mold_backoff = Backoff.new
          @facts = BootFacts.new
          @systemd = Systemd.new(self)
          @again = @stopping = @failure = @reload = @upgrade = nil
        end

        # Serves until INT or TERM, or until another master has taken over.
        # @return [Boolean] whether every request was answered
        # @raise [BootError]
        def run
          open
          start_mold(configuration)
          look until over?
          raise BootError, @failure if @failure

          !fleet.unclean?
        ensure
          close
        end

        # @return [Boolean] whether it has been told to stop
        def stopping? = !@stopping.nil?

        # Reads what may come to `io`, beside all else.
        # @param io [IO]
        # @yield when it is readable; must not wait
        # @return [void]
        def watch(io, &block) = @watched[io] = block

        # New code, worker by worker.
        # @return [void]
        def reload
          return @again = true if @reload
          return if @stopping || @upgrade

          newer = configuration.reload
          configuration.needing_restart(newer) { |text| @log.notice(text) }
          commons.renew_tls(newer, @log)
          started = start_mold(newer)
          @systemd.reloading
          @reload = Reload.new(fleet, started, @log) { |mold| reloaded(mold) }
        rescue ConfigurationError, BootError => e
          @log.notice("not reloaded: #{one_line(e.message)}; the workers go on as they are")
        end

        # A new master from new code, on the same sockets.
        # @return [void]
        def restart
          return if @stopping || @upgrade

          @reload&.abandon("a new master takes over")
          @log.notice("a new master is started")
          @upgrade = Upgrade.new(commons, @inheritance.command)
        rescue SystemCallError => e
          @log.notice("no new master could be started: #{e.message}")
        end

        # @param now [Boolean] whether requests that run are cut off
        # @param handing_over [Boolean] whether other processes serve the same sockets from now on
        # @return [void]
        def stop(now: false, handing_over: false)
          @reload&.abandon("the server stops") unless @stopping
          @systemd.stopping(handing_over ? @upgrade&.pid : nil)
          @stopping = handing_over ? "leave" : "stop"
          @stopping = "now" if now
          handing_over ? commons.release_listeners : commons.close_listeners
          @molds.end_all
          # Who closes a socket last answers what is queued there: that must be a worker, and not the mold.
          end_workers if @molds.empty? || now
        end

        private

        def open
          DescriptorLimit.raise
          adopting = Processes.adopt_orphans
          raise BootError, "more than one worker needs Linux for now: run with --workers 0" unless adopting

          @commons = Commons.new(configuration, @inheritance, @log)
          commons.learned.follow(configuration)
          @fleet = Fleet.new(configuration.worker_count, commons.board, commons.learned, @log, method(:now))
          @watch = Watch.new(fleet, @log, method(:now))
          @restart_file = RestartFile.new
          @signals = SignalPipe.new(SIGNALS)
          @looked = now
          Process.setproctitle("heddle: master")
        end

        def start_mold(configuration)
          setting = Worker::Setting.new(configuration:, log: @log, commons:, control: control&.folder)
          @molds.start(setting) { forget }
        end

        # In the mold, and so in all workers: what is the master's alone.
        def forget
          @signals.forget
          fleet.workers.each { |worker| worker.channel.close }
          @watched.each_key(&:close)
          control&.forget
          @upgrade&.forget
          @inheritance.forget
        end

        # -- what happens ---------------------------------------------------------------------------------------------

        def look
          wait
          @signals.take.uniq.each { |name| heed(name) }
          hear
          reap
          proceed
        end

        def wait
          talking = [*fleet.workers.reject(&:silent), *@molds.reject(&:silent?)].map { |one| one.channel.io }
          ready, = IO.select([@signals.io, *talking, *@watched.keys, @upgrade&.io].compact, nil, nil, time_to_wait)
          (ready || []).each { |io| @watched[io]&.call }
        end

        def time_to_wait = [[@looked + LOOK, @due, @systemd.due].compact.min - now, 0].max

        def heed(name)
          case name
          when "INT" then interrupt
          when "TERM" then terminate("")
          when "HUP", "USR1" then reload
          when "USR2" then restart
          when "TTIN" then resize(fleet.size + 1)
          when "TTOU" then resize(fleet.size - 1)
          end
        end

        def interrupt
          return terminate("; Ctrl-C again stops at once") unless @stopping && @interrupted

          @log.notice("stopping at once")
          stop(now: true)
        ensure
          @interrupted = true
        end

        def terminate(hint)
          return if @stopping

          @log.notice("stopping when running requests are answered#{hint}")
          stop
        end

        def resize(size)
          return if @stopping || size < 1 || size > commons.board.slots / 2

          fleet.resize(size)
          @log.notice("#{size} #{size == 1 ? "worker" : "workers"} from now on")
        end

        def hear
          @molds.each { |mold| hear_mold(mold) unless mold.silent? }
          fleet.workers.each { |worker| hear_worker(worker) unless worker.silent }
          hear_upgrade if @upgrade
        end

        def hear_mold(mold)
          while (message = mold.channel.hear).is_a?(Channel::Message)
            values = message.values
            case message.what
            when "ready" then mold_ready(mold)
            when "failed" then mold.failure = values["message"]
            when "spawned" then fleet.spawned(values["slot"], values["pid"])
            when "unspawned" then fleet.unspawned(values["slot"], values["message"])
            end
          end
          mold.channel.close if message.nil?
        end

        def mold_ready(mold)
          return if mold.state == :ending

          mold.state = :ready
          return if @reload&.mold.equal?(mold)
          return mold.end! if fleet.mold # that of a reload was quicker

          fleet.mold = mold
        end

        def hear_worker(worker)
          while (message = worker.channel.hear).is_a?(Channel::Message)
            worker.heard = now
            heed_worker(worker, message)
          end
          fleet.silent(worker) if message.nil?
        end

        def heed_worker(worker, message)
          case message.what
          when "ready"
            @facts.hear(worker, message.values)
            fleet.ready(worker)
          when "answer" then worker.answered(message.values["id"], message.values["value"])
          when "accepts_no_more" then worker.accepting = false
          when "asks_to_end"
            # Somebody has ended that very process; unless we were told to stop too, the others go on.
            fleet.retire(worker, @stopping || "leave") unless worker.ending?
          end
        end

        def hear_upgrade
          case @upgrade.hear
          when :ready
            @log.notice("the new master (pid #{@upgrade.pid}) serves: this one ends")
            stop(handing_over: true)
          when :failed
            @log.notice("the new master could not start; this one goes on") unless @stopping
            @upgrade.close
            @upgrade = nil
          end
        end

        def reap
          while (pid, status = Process.waitpid2(-1, Process::WNOHANG))
            mold = @molds.find { |one| one.pid == pid }
            if mold then mold_ended(mold, status)
            elsif pid == @upgrade&.pid then @upgrade.ended
            else fleet.reaped(pid, status)
            end
          end
        rescue Errno::ECHILD
          nil
        end

        def mold_ended(mold, status)
          hear_mold(mold) unless mold.silent?
          @molds.delete(mold)
          fleet.mold = nil if fleet.mold.equal?(mold)
          return end_workers_at_last if @stopping
          return if mold.state == :ending

          mold.state == :loading ? unloaded(mold, status) : lost(mold, status)
        end

        # The application could not be loaded.
        def unloaded(mold, status)
          reason = mold.failure || "the process that was to load the application #{Endings.of(status)}"
          if @reload&.mold.equal?(mold)
            @reload.abandon(one_line(reason))
          elsif fleet.empty?
            @failure = reason
          else
            again(mold, "the application can't be loaded any more: #{one_line(reason)}")
          end
        end

        def lost(mold, status)
          @reload&.abandon("its mold #{Endings.of(status)}") if @reload&.mold.equal?(mold)
          again(mold, "the mold (pid #{mold.pid}) #{Endings.of(status)}")
        end

        def again(mold, what)
          return if fleet.mold

          delay = @mold_backoff.failed(now, now - mold.born)
          @log.notice("#{what}; it is loaded again #{delay == 0 ? "now" : "in #{delay} s"}")
          @load_again = now + delay
        end

        def reloaded(mold)
          configuration = fleet.mold&.configuration
          @configuration = configuration if configuration
          commons.learned.follow(self.configuration)
          mold&.end!
          @reload = nil
          @systemd.ready unless @announce
        end

        # -- what follows ---------------------------------------------------------------------------------------------

        def proceed
          @due = nil
          @systemd.live(now)
          look_after if now >= @looked + LOOK
          return end_late if @stopping

          @reload&.proceed
          reload_again if @again && !@reload
          load_again if @load_again && now >= @load_again
          @due = [fleet.fill, @load_again].compact.min
          @failure ||= fleet.failure
          announce if @announce && fleet.complete?
        end

        def look_after
          @looked = now
          @watch.look
          commons.renew_ticket_keys
          reload if @restart_file.touched? && !@stopping
        end

        def reload_again
          @again = nil
          reload
        end

        def load_again
          @load_again = nil
          start_mold(configuration) unless fleet.mold
        end

        def announce
          @systemd.ready
          @announce.call(commons.urls, @facts.of_all(configuration, fleet.size))
          @announce = nil
          @inheritance.ready
        end

        def end_workers
          @deadline = now + HURRY if @stopping == "now"
          fleet.workers.each { |worker| fleet.retire(worker, @stopping) }
        end

        def end_workers_at_last
          end_workers if @molds.empty?
        end

        def end_late
          return unless @deadline && now > @deadline

          @deadline = nil
          fleet.workers.each { |worker| worker.kill("KILL") }
        end

        def over? = @failure || (@stopping && fleet.empty? && @molds.empty?)

        def close
          @molds.end_all
          fleet&.workers&.each { |worker| worker.kill("KILL") }
          commons&.close
          @signals&.close
          @upgrade&.close
        end

        def one_line(text) = text.lines.map(&:strip).reject(&:empty?).first(4).join(" ")

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
