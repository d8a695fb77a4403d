# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's command for each signal.
      class Signals
        # CHLD asks for nothing, it ends a wait.
        NAMES = %w[INT TERM HUP USR1 USR2 TTIN TTOU CHLD].freeze
        private_constant :NAMES

        # @param master [Master]
        # @param log [#notice]
        def initialize(master, log)
          @master = master
          @log = log
          @pipe = SignalPipe.new(NAMES)
          @interrupted = false
        end

        # @return [IO] readable when there are signals
        def io = @pipe.io

        # Runs the commands of the signals that have arrived since the last call.
        # @return [void]
        def handle = @pipe.read.uniq.each { |name| handle_signal(name) }

        # Restores the former handlers.
        # @return [void]
        def close = @pipe.close

        # Called in a child process, which has its own signals.
        # @return [void]
        def close_in_child = @pipe.close_in_child

        private

        def handle_signal(name)
          case name
          when "INT" then interrupt
          when "TERM" then terminate("")
          when "HUP", "USR1" then @master.reload
          when "USR2" then @master.restart
          when "TTIN" then @master.resize(@master.fleet.size + 1)
          when "TTOU" then @master.resize(@master.fleet.size - 1)
          end
        end

        def interrupt
          return terminate("; Ctrl-C again stops at once") unless @master.stopping? && @interrupted

          @log.notice("stopping at once")
          @master.stop(now: true)
        ensure
          @interrupted = true
        end

        def terminate(hint)
          return if @master.stopping?

          @log.notice("stopping when running requests are answered#{@master.configuration.drain_hint}#{hint}")
          @master.stop
        end
      end
    end
  end
end
