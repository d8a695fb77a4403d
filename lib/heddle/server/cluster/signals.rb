# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's command for each signal.
      class Signals
        # CHLD has no command: it only ends a wait.
        NAMES = %w[INT TERM QUIT HUP USR1 USR2 TTIN TTOU CHLD].freeze
        private_constant :NAMES

        # @param master [Master]
        # @param log [#event]
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

        # Restores the previous handlers.
        # @return [void]
        def close = @pipe.close

        # Called in a child process, which has its own signals.
        # @return [void]
        def close_in_child = @pipe.close_in_child

        private

        def handle_signal(name)
          case name
          when "INT" then interrupt
          when "TERM", "QUIT" then terminate(name)
          when "HUP", "USR1" then reload(name)
          when "USR2" then @master.restart
          when "TTIN" then @master.resize(@master.fleet.size + 1)
          when "TTOU" then @master.resize(@master.fleet.size - 1)
          end
        end

        def interrupt
          return terminate("INT", Server::Signals::HINT) unless @master.stopping? && @interrupted

          @log.event(:stop_now_requested, source: "SIGINT")
          @master.stop(now: true)
        ensure
          @interrupted = true
        end

        def terminate(name, hint = nil)
          return if @master.stopping?

          @log.event(:stop_requested, source: "SIG#{name}", hint:, drain_delay: @master.configuration.drain_time)
          @master.stop
        end

        def reload(name)
          @log.event(:reload_requested, source: "SIG#{name}")
          @master.reload
        end
      end
    end
  end
end
