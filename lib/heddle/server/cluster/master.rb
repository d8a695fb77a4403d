# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The process that owns the sockets and the restarts, and loads nothing of the application. It has no loop, so
      # that it can fork at any moment.
      #
      #     Master.new(configuration, log:, load: -> { application }) { |urls, facts| puts "ready" }.run
      class Master
        include MonotonicClock

        # Seconds between two looks at the workers.
        LOOK = 1
        # Seconds that workers may take to end at once.
        HURRY = 2
        private_constant :LOOK, :HURRY

        # @return [Fleet]
        attr_reader :fleet
        # @return [Commons]
        attr_reader :commons
        # @return [WorkingFolder] the application's
        attr_reader :folder
        # @return [Control::Cluster, nil] what answers operators, in a thread of its own
        attr_accessor :control

        # @param configuration [Configuration]
        # @param log [Log]
        # @param load [#call] gives the application, in the mold; raises BootError
        # @param inheritance [Inheritance] from the master that this one is to replace
        # @yieldparam urls [Array<String>]
        # @yieldparam facts [Hash{Symbol => String}] {Cluster.facts} of a worker
        def initialize(configuration, log:, load:, inheritance: Inheritance.none, &announce)
          @log = log
          @inheritance = inheritance
          @announce = announce
          @watched = {}
          @facts = BootFacts.new
          @collection_turns = CollectionTurns.new
          @systemd = Systemd.new(self)
          @molds = Molds.new(load, method(:now))
          @folder = WorkingFolder.new
          @molding = Molding.new(self, @molds, @systemd, configuration, log) { |one| start_mold(one) }
          @stopping = @failure = @upgrade = nil
        end

        # Serves until INT or TERM, or until another master has taken over.
        # @return [Boolean] whether every request was answered
        # @raise [BootError]
        def run
          open
          @molding.begin
          look until over?
          raise BootError, @failure if @failure

          !fleet.unclean?
        ensure
          close
        end

        # @return [Configuration] that of the newest mold
        def configuration = @molding.configuration

        # @return [Boolean] whether it stops
        def stopping? = !@stopping.nil?

        # Reads what may come to `io`, beside all else.
        # @param io [IO]
        # @yield when it is readable; must not wait
        # @return [void]
        def watch(io, &block) = @watched[io] = block

        # New code, worker by worker.
        # @return [void]
        def reload
          @molding.reload unless @stopping || @upgrade
        end

        # A new master from new code, on the same sockets.
        # @return [void]
        def restart
          return if @stopping || @upgrade

          @molding.abandon("a new master takes over")
          configuration.hooks.try(:on_restart, @log)
          @log.notice("a new master is started")
          @upgrade = Upgrade.new(commons, @inheritance.command, folder)
        rescue SystemCallError => e
          @log.notice("no new master could be started: #{e.message}")
        end

        # @param size [Integer] how many workers there are to be; a number that can't be is left alone
        # @return [void]
        def resize(size)
          return if @stopping || size < 1 || size > commons.scoreboard.slots / 2

          fleet.resize(size)
          @log.notice("#{size} #{size == 1 ? "worker" : "workers"} from now on")
        end

        # @param now [Boolean] whether requests that run are cut off
        # @param handing_over [Boolean] whether other processes serve the same sockets from now on
        # @return [void]
        def stop(now: false, handing_over: false)
          @molding.abandon("the server stops")
          @systemd.stopping(handing_over ? @upgrade&.pid : nil)
          @stopping = handing_over ? "leave" : "stop"
          @stopping = "now" if now
          handing_over ? commons.release_listeners : commons.close_listeners
          @molding.stop
          # The last process to close a socket answers its queue: that must be a worker, and not the mold.
          end_workers if @molds.empty? || now
        end

        private

        def open
          FileSizeLimit.make_writes_fail
          DescriptorLimit.lift if configuration.descriptor_limit == :hard
          adopting = Processes.adopt_orphans
          raise BootError, "workers as processes of their own need Linux for now: run with --workers 0" unless adopting

          @commons = Commons.new(configuration, @inheritance, @log)
          @fleet = Fleet.new(configuration.worker_count, commons.scoreboard, @log, method(:now),
                             reserves: configuration.reserve_count)
          @health_check = HealthCheck.new(fleet, @log, method(:now))
          @restart_file = RestartFile.new(File.join(folder.path, "tmp/restart.txt"))
          @signals = Signals.new(self, @log)
          @looked = now
          Process.setproctitle("heddle: master")
        end

        def start_mold(configuration)
          setting = Worker::Setting.new(configuration:, log: @log, commons:, control: control&.folder)
          @molds.start(setting) { forget }
        end

        # In the mold, and so in all workers: closes the master's own resources.
        def forget
          @signals.forget
          fleet.workers.each { |worker| worker.channel.close }
          @watched.each_key(&:close)
          control&.forget
          @upgrade&.forget
          @inheritance.forget
        end

        # -- events ---------------------------------------------------------------------------------------------------

        def look
          wait
          @signals.heed
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

        def hear
          @molding.hear
          fleet.workers.each { |worker| hear_worker(worker) unless worker.silent }
          hear_upgrade if @upgrade
        end

        def hear_worker(worker)
          while (message = worker.channel.receive).is_a?(MessageSocket::Message)
            worker.heard = now
            heed_worker(worker, message)
          end
          fleet.silent(worker) if message.nil?
        rescue MessageSocket::Malformed => e
          worker.malformed { @log.notice("#{worker.name} sends #{e.message}; it is ignored") }
          retry
        end

        def heed_worker(worker, message)
          case message.what
          when "ready"
            @facts.hear(worker, message)
            fleet.ready(worker)
          when "answer" then worker.answered(message.fetch("id", Integer), message.values["value"])
          when "accepts_no_more" then worker.accepting = false
          when "asks_to_collect" then @collection_turns.ask(worker)
          when "collected" then @collection_turns.done(worker)
          when "asks_to_end"
            # A signal has ended this one process. Unless the master stops too, the others go on.
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
          @molding.ended(mold, status)
          end_workers if @stopping && @molds.empty?
        end

        # -- reactions ------------------------------------------------------------------------------------------------

        def proceed
          @due = nil
          @systemd.live(now)
          look_after if now >= @looked + LOOK
          return end_late if @stopping

          @molding.proceed
          @collection_turns.proceed
          @due = [fleet.fill, @molding.due].compact.min
          @failure = @molding.failure || fleet.failure
          announce if @announce && fleet.complete?
        end

        def look_after
          @looked = now
          @health_check.check_workers
          commons.renew_ticket_keys
          @molding.refork unless @stopping || @upgrade
          reload if @restart_file.touched? && !@stopping
        end

        def announce
          @systemd.ready
          @announce.call(commons.urls, @facts.of_all(configuration, fleet.size))
          @announce = nil
          @inheritance.ready
          configuration.hooks.try(:on_booted, @log)
        end

        def end_workers
          @deadline = now + HURRY if @stopping == "now"
          fleet.workers.each { |worker| fleet.retire(worker, @stopping) }
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
      end
    end
  end
end
