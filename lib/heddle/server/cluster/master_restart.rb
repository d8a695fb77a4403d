# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Replaces the master (`heddle restart`): starts a new master, which loads all code again and serves the same
      # sockets. Stops this master when the new one serves.
      class MasterRestart
        # @return [NewMaster, nil] the new master, which is starting or already serves
        attr_reader :new_master

        # @param master [Master]
        # @param inheritance [Inheritance] has the command line of this process
        # @param log [#event]
        def initialize(master, inheritance, log)
          @master = master
          @inheritance = inheritance
          @log = log
          @new_master = @abandoned = @done = nil
        end

        # @return [Boolean] whether a new master is starting, or already serves
        def running? = !new_master.nil?

        # @yield when the restart has ended
        # @yieldparam problem [String, nil] why this master was kept; nil: the new one serves
        # @return [void]
        def start(&done)
          @done = done
          return give_up("process 1 of a container can't be replaced: when it ends, all others end") if Process.pid == 1

          @master.configuration.hooks.run_safely(:on_restart, @log)
          @log.event(:restart_started)
          @new_master = NewMaster.new(@master.resources, @inheritance.command, @master.folder)
        rescue SystemCallError => e
          give_up("no new master could be started: #{e.message}")
        end

        # Reads what the new master has reported, and acts on it.
        # @return [void]
        def check
          case new_master&.poll
          when :ready
            return if @master.stopping? # the new master was told to end just before it reported

            @log.event(:restarted, pid: new_master.pid)
            report(nil)
            @master.stop(replaced: true)
          when :failed
            problem = ["the new master could not start", new_master.problem].compact.join(": ")
            new_master.close
            @new_master = nil
            give_up(problem)
          end
        end

        # Ends a new master that does not serve yet, because the whole server is to stop.
        # @return [void]
        def abandon
          @abandoned = new_master&.pid or return

          report("the server is stopping")
          Process.kill("TERM", @abandoned)
        end

        # @return [Boolean] whether a new master that was abandoned has not ended yet
        def abandoning?
          !@abandoned.nil? && Process.kill(0, @abandoned) == 1
        rescue Errno::ESRCH
          false
        end

        # Called when this master ends.
        # @return [void]
        def close
          new_master&.close
          report("the server has stopped")
        end

        private

        def give_up(problem)
          problem = ErrorText.one_line(problem)
          @log.event(:restart_failed, reason: problem) unless @master.stopping?
          report(problem)
        end

        def report(problem)
          done, @done = @done, nil
          done&.call(problem)
        end
      end
    end
  end
end
