# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Sees to it that there is a mold of the newest code: loads the application first, again for each reload, and once
      # more when the mold has died.
      class Molding
        include MonotonicClock

        # In the message of a SyntaxError: a line of code, and the mark below it that comes before the mistake.
        CODE = /\A(?:> ?)?\d+ \|/
        MARK = /\A\|\s*\^~*\s*/
        private_constant :CODE, :MARK

        # @return [Configuration] that of the newest mold
        attr_reader :configuration
        # @return [String, nil] why nothing could be loaded, while there is no worker
        attr_reader :failure
        # @return [Float, nil] when {#proceed} has something to do
        attr_reader :due

        # @param master [Master]
        # @param molds [Molds]
        # @param systemd [Systemd]
        # @param configuration [Configuration]
        # @param log [#notice]
        # @yieldparam configuration [Configuration]
        # @yieldreturn [MoldHandle] one that loads the application
        def initialize(master, molds, systemd, configuration, log, &start)
          @master = master
          @molds = molds
          @systemd = systemd
          @configuration = configuration
          @log = log
          @start = start
          @backoff = Backoff.new
          @reload = @again = @due = @failure = nil
          @stopped = false
        end

        # @return [void]
        # @raise [BootError] when there can be no process for it
        def begin
          @start.call(configuration)
        rescue SystemCallError => e
          raise BootError, "the process that loads the application can't be forked: #{e.message}"
        end

        # New code, worker by worker; while that goes on, once more afterwards.
        # @return [void]
        def reload
          return @again = true if @reload

          @systemd.reloading
          folder.follow
          newer = configuration.reload
          newer.check_selector
          newer.check_body_folder
          newer.web_socket_origins
          configuration.needing_restart(newer) { |text| @log.notice(text) }
          commons.renew_tls(newer, @log)
          mold = @start.call(newer)
          @reload = Reload.new(fleet, mold, @log) { |former, problem| reloaded(former, problem) }
        rescue ConfigurationError, BootError, SystemCallError => e
          folder.go_back
          problem = one_line(e.message)
          @log.notice("not reloaded: #{problem}; the workers go on as they are")
          @systemd.reloaded(problem)
        end

        # A worker that has served enough requests becomes the mold, and the others are forked from it.
        # @return [void]
        def refork
          return if @reload || @stopped

          worker = Refork.candidate(fleet, commons.scoreboard) or return
          worker.mold.warm = true # once is enough, also if it fails
          mold = @molds.make_of(worker)
          mold.warm = true
          @reload = Reload.new(fleet, mold, @log, name: "reforked", result: "with the memory of a warm one") do |former|
            reloaded(former)
          end
          fleet.start(worker.index, replaces: worker) or @reload.abandon("no worker can be started now")
        rescue SystemCallError => e
          @log.notice("not reforked: #{one_line(e.message)}; the workers go on as they are")
        end

        # No reload any more.
        # @param reason [String]
        # @return [void]
        def abandon(reason) = @reload&.abandon(reason)

        # No mold any more.
        # @return [void]
        def stop
          @stopped = true
          @molds.end_all
        end

        # Reads what the molds say.
        # @return [void]
        def hear = @molds.each { |mold| hear_one(mold) unless mold.silent? }

        # @param mold [MoldHandle] the handle of the ended process
        # @param status [Process::Status]
        # @return [void]
        def ended(mold, status)
          hear_one(mold) unless mold.silent?
          @molds.delete(mold)
          fleet.mold = nil if fleet.mold.equal?(mold)
          return if @stopped || mold.state == :ending

          mold.state == :loading ? unloaded(mold, status) : lost(mold, status)
        end

        # Goes as far as it can now.
        # @return [void]
        def proceed
          @reload&.proceed
          reload_again if @again && !@reload
          load_again if due && now >= due
        end

        private

        def fleet = @master.fleet

        def commons = @master.commons

        def folder = @master.folder

        def hear_one(mold)
          while (message = mold.channel.receive).is_a?(MessageSocket::Message)
            heed(mold, message)
          end
          silent(mold) if message.nil?
        rescue MessageSocket::Malformed => e
          mold.malformed { @log.notice("the mold (pid #{mold.pid}) sends #{e.message}; it is ignored") }
          retry
        end

        # It says nothing any more. The end of its process is heard by other means, if it has become one.
        def silent(mold)
          mold.channel.close
          return if mold.pid

          @molds.delete(mold)
          @reload.abandon("the worker has not become a mold") if @reload&.mold.equal?(mold)
        end

        def heed(mold, message)
          case message.what
          when "ready"
            mold.pid = pid_of(message)
            ready(mold)
          when "failed" then mold.failure = message.fetch("message", String)
          when "spawned" then fleet.spawned(message.fetch("slot", Integer), pid_of(message))
          when "unspawned" then fleet.unspawned(message.fetch("slot", Integer), message.fetch("message", String))
          end
        end

        # 0 and negative numbers would make signals go to process groups.
        def pid_of(message)
          pid = message.fetch("pid", Integer)
          pid > 1 ? pid : raise(MessageSocket::Malformed, "the process id #{pid}")
        end

        def ready(mold)
          return if mold.state == :ending

          mold.state = :ready
          return if @reload&.mold.equal?(mold)
          return @molds.end_one(mold) if fleet.mold # that of a reload was quicker

          fleet.mold = mold
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

          delay_for(now - mold.born) { |soon| "#{what}; it is loaded again #{soon}" }
        end

        # Something has lasted for so many seconds.
        def delay_for(seconds)
          delay = @backoff.failed(now, seconds)
          @log.notice(yield(delay == 0 ? "now" : "in #{delay} s"))
          @due = now + delay
        end

        def load_again
          @due = nil
          @start.call(configuration) unless fleet.mold
        rescue SystemCallError => e
          delay_for(0) { |soon| "the application can't be loaded again: #{e.message}; that is tried once more #{soon}" }
        end

        def reload_again
          @again = nil
          @master.reload
        end

        def reloaded(former, problem = nil)
          newest = fleet.mold&.configuration
          @configuration = newest if newest
          fleet.mold.equal?(@reload.mold) ? folder.keep : folder.go_back
          @molds.end_one(former) if former
          @reload = nil
          @systemd.reloaded(problem)
        end

        # Leaves out the lines of code that the message of a syntax error has.
        def one_line(text)
          lines = text.lines.map { |line| line.strip.sub(MARK, "") }
          lines.reject { |line| line.empty? || CODE.match?(line) }.first(4).join(" ")
        end
      end
    end
  end
end
