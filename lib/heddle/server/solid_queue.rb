# frozen_string_literal: true

module Heddle
  class Server
    # The option `solid_queue`: Solid Queue's supervisor in a process of its own, as the gem's plugin for Puma runs it.
    # The process is forked from one that has loaded the application. It ends with the server, and the server ends when
    # it ends.
    module SolidQueue
      # The signal with which the server asks the process to end. It then finishes its running jobs within Solid Queue's
      # shutdown_timeout.
      SIGNAL = "INT"

      class << self
        # @return [void]
        # @raise [BootError] where the application does not have the gem
        def check
          return if defined?(::SolidQueue::Supervisor)

          raise BootError, "solid_queue needs the gem solid_queue, which this application does not load. Is " \
                           "SOLID_QUEUE_IN_PUMA set for another application?"
        end

        # Called in the process of the jobs. Never returns.
        # @yield waits until the server has ended
        def run
          Process.setproctitle("heddle: jobs")
          %w[INT TERM QUIT HUP USR1 USR2 CHLD].each { |name| trap(name, "DEFAULT") }
          Thread.new do
            yield
            Process.kill(SIGNAL, Process.pid)
          end
          ::SolidQueue::Supervisor.start(mode: :fork)
          exit!(0)
        rescue SignalException, SystemExit
          exit!(0)
        rescue Exception => e
          Events.report(:solid_queue_failed, error: ErrorText.full(e))
          exit!(1)
        end

        # For a server of one process: runs the jobs' process beside the block.
        # @param configuration [Configuration]
        # @param log [Log]
        # @yieldparam begin [Proc] to be called when requests are accepted
        # @return [Object] what the block returns
        # @raise [BootError]
        def beside(configuration, log)
          return yield(-> {}) unless configuration.solid_queue

          check
          reader, writer = IO.pipe
          pid = fork { run_when_begun(reader, writer) }
          reader.close
          ended = watch(pid, log)
          yield(-> { writer.write("\n") })
        ensure
          finish(pid, writer, ended) if pid
        end

        private

        # The sockets of the server are open here, too, until this process ends.
        def run_when_begun(reader, writer)
          writer.close
          reader.gets or exit!(0)
          run { reader.read }
        end

        def watch(pid, log)
          Thread.new do
            Process.wait(pid)
            next if Thread.current[:finishing]

            log.event(:solid_queue_ended, pid:)
            Process.kill(SIGNAL, Process.pid)
          rescue Errno::ECHILD
            nil
          end
        end

        def finish(pid, writer, ended)
          ended[:finishing] = true
          Process.kill(SIGNAL, pid) if ended.alive?
          writer.close
          ended.join
        rescue Errno::ESRCH
          nil
        end
      end
    end
  end
end
