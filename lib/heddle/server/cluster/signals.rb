# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Runs the master's command for each signal. Ruby allows few calls in a trap. So a trap only writes to a pipe,
      # which the master reads.
      class Signals
        # CHLD has no command. It only wakes the master, which then reaps its children.
        NAMES = %w[INT TERM QUIT HUP USR1 USR2 TTIN TTOU CHLD].freeze
        private_constant :NAMES

        # @return [IO] the pipe; readable when a signal has arrived
        attr_reader :io

        # @param master [Master]
        # @param log [#event]
        def initialize(master, log)
          @master = master
          @log = log
          @interrupts = 0
          @io, @writer = IO.pipe
          process = Process.pid
          @previous_handlers = NAMES.to_h do |name|
            [name, trap(name) { @writer.write_nonblock("#{name}\n", exception: false) if Process.pid == process }]
          end
        end

        # Runs the commands of the signals that have arrived since the last call. Each TTIN and each TTOU counts.
        # Several signals of any other name run their command once.
        # @return [void]
        def handle
          text = @io.read_nonblock(4_096, exception: false)
          text.split("\n").tally.each { |name, times| handle_signal(name, times) } if text.is_a?(String)
        end

        # Restores the previous handlers.
        # @return [void]
        def close
          @previous_handlers.each { |name, handler| trap(name, handler || "DEFAULT") }
          @io.close
          @writer.close
        end

        # Called in a forked child, before it sets its own handlers. In the parent, signals may have arrived whose traps
        # Ruby had not run yet. The fork has copied these pending signals, and the default handlers would end the child.
        # So the child first makes Ruby run the pending traps, by sending a signal to itself.
        # @return [void]
        def close_in_child
          Process.kill(NAMES.first, Process.pid)
          NAMES.each { |name| trap(name, "DEFAULT") }
          @io.close
          @writer.close
        end

        private

        def handle_signal(name, times)
          case name
          when "INT" then interrupt
          when "TERM", "QUIT" then terminate(name)
          when "HUP", "USR1" then reload(name)
          when "USR2" then @master.restart
          when "TTIN" then times.times { @master.resize(@master.fleet.size + 1) }
          when "TTOU" then times.times { @master.resize(@master.fleet.size - 1) }
          end
        end

        # Ignores the third SIGINT and later ones: each would restart the time limit of the immediate stop.
        def interrupt
          case @interrupts += 1
          when 1 then terminate("INT", SingleProcess::Signals::HINT)
          when 2
            @log.event(:stop_now_requested, source: "SIGINT")
            @master.stop(now: true)
          end
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
