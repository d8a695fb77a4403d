# frozen_string_literal: true

module Heddle
  class Server
    # The option `solid_queue`: runs Solid Queue's supervisor in its own process, as the gem's plugin for Puma does.
    # That process is forked from a process that has loaded the application. When either the server or the supervisor
    # ends, the other one ends, too.
    module SolidQueue
      # The signal with which the server stops the supervisor, or itself when the supervisor has ended. When the
      # supervisor is stopped, the running jobs have Solid Queue's shutdown_timeout to finish.
      SIGNAL = "INT"

      class << self
        # Checks that the application has loaded the gem.
        # @return [void]
        # @raise [BootError] if the application has not loaded the gem
        def check
          return if defined?(::SolidQueue::Supervisor)

          raise BootError, "the option solid_queue needs the gem solid_queue, which this application does not load. " \
                           "The variable SOLID_QUEUE_IN_PUMA also sets the option: unset it if it is meant for " \
                           "another application"
        end

        # Runs the supervisor in the calling process. Never returns.
        # @yield on a thread, to wait until the server has ended
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

        # Runs the supervisor's process while the block runs. Called in a server with a single process.
        # @param configuration [Configuration]
        # @param log [Log]
        # @yieldparam begin [Proc] starts the jobs; to be called when the server accepts requests
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

        # Called in the forked process. The server's sockets, which this process has inherited, stay open here until the
        # process ends.
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
