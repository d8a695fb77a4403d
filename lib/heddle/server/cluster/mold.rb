# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The process that has loaded the application and serves nothing: workers are copies of it, and share its memory
      # as long as they don't write to it.
      class Mold
        # @param setting [Worker::Setting] what workers need
        # @param channel [MessageSocket] to the master
        # @param load [#call] the application; raises BootError
        def initialize(setting, channel, &load)
          @setting = setting
          @channel = channel
          @load = load
        end

        # Never returns.
        def run = serve_forks { prepare }

        # Never returns. In the copy of a worker that has served its last request.
        # @param app [#call]
        def run_warm(app) = serve_forks { warm(app) }

        private

        def serve_forks
          Process.setproctitle("heddle: mold")
          # Ctrl-C, and a closing terminal, signal all processes; the master decides what happens.
          %w[INT HUP].each { |name| trap(name) {} } # rubocop:disable Lint/EmptyBlock
          trap("TERM", "DEFAULT")
          @app = yield
          @channel.send_message("ready", pid: Process.pid)
          fork_workers
          leave(0)
        rescue SignalException
          leave(0)
        rescue Exception => e
          reason = ProcessLimit.explain(e) || e.full_message(highlight: false)
          @setting.log.errors.write("the mold failed: #{reason.chomp}\n")
          leave(1)
        end

        # Its workers begin to count anew.
        def warm(app)
          Stalls.reset
          hooks.run(:after_mold)
          SharedHeap.pack
          app
        rescue SignalException
          raise
        rescue Exception => e
          fail_by_hook(e)
        end

        def prepare
          @setting.configuration.export_environment
          hooks.run(:before_mold)
          app = @load.call
          load_what_serves
          Rails.start(fibers: @setting.configuration.mode == :fiber) if defined?(::ActiveSupport)
          Databases.start(fibers: @setting.configuration.mode == :fiber)
          hooks.run(:after_mold)
          JIT.enable
          app = Ractors::Sharing.new(app).share(@setting.log) if @setting.configuration.mode == :ractor
          SharedHeap.pack
          app
        rescue SystemExit => e
          fail_with(BootError.ended(e).message)
        rescue BootError => e
          fail_with(e.message)
        rescue SignalException
          raise
        rescue Exception => e
          fail_by_hook(e)
        end

        # So that the workers share it. After the application, which chooses the versions of gems.
        def load_what_serves
          Heddle.eager_load
          Server.load_everything
        rescue LoadError => e
          raise BootError, LoadFailure.new(e).message
        end

        def fail_with(message)
          @channel.send_message("failed", message:)
          leave(1)
        end

        def fail_by_hook(error)
          fail_with("a hook failed: #{ErrorText.summary(error)} (#{error.backtrace&.first})")
        end

        # The application's at_exit blocks are for serving processes.
        def leave(status)
          $stdout.flush
          $stderr.flush
          exit!(status)
        end

        def fork_workers
          while (message = @channel.wait)
            spawn(message) if message.what == "spawn"
          end
        end

        # Forked twice, so that the worker becomes a child of the master: that one hears how it ends.
        def spawn(message)
          slot = message.values["slot"]
          hooks.run(:before_worker_fork)
          reader, writer = IO.pipe
          middle = ProcessLimit.forking { fork_middle(message, reader, writer) }
          writer.close
          pid = reader.read.to_i
          reader.close
          Process.wait(middle)
          raise ProcessLimit.failed_fork(-pid) if pid < 0
          # The master would signal process 0, which is its own process group.
          raise "the process that forks the worker has ended; the kernel's log tells if memory was short" if pid.zero?

          @channel.send_message("spawned", slot:, pid:)
        rescue SignalException
          raise
        rescue Exception => e # a hook's, which may be anything: the mold must go on to fork
          @channel.send_message("unspawned", slot:, message: ProcessLimit.explain(e) || ErrorText.summary(e))
        ensure
          message.io.close
        end

        def fork_middle(message, reader, writer)
          fork do
            reader.close
            writer.write(fork_worker(message, writer).to_s)
          rescue Errno::EPIPE
            nil # the mold has been ended meanwhile
          ensure
            exit!(0)
          end
        end

        # @return [Integer] the process, or the error's number, negative
        def fork_worker(message, writer)
          fork { work(message, writer) }
        rescue SystemCallError => e
          -e.errno
        end

        def work(message, writer)
          writer.close
          @channel.close
          Worker.new(@setting, index: message.values["index"], slot: message.values["slot"],
                               reserve: message.values["rank"], channel: MessageSocket.new(message.io)).run(@app)
        end

        def hooks = @setting.configuration.hooks
      end
    end
  end
end
