# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The mold: the process that loads the application, serves nothing, and forks the workers. Workers share its
      # memory as long as they don't write to it.
      class MoldProcess
        # @param setting [Worker::Setting] the resources that it passes to workers
        # @param channel [MessageSocket] the channel to the master
        # @param load [#call] loads and returns the application; raises BootError
        def initialize(setting, channel, &load)
          @setting = setting
          @channel = channel
          @load = load
        end

        # Loads the application, and forks workers until the master ends. Never returns.
        def run = run_fork_loop { load_application }

        # Called in a process that a worker forks after its last request. This process becomes a mold. Never returns.
        # @param app [#call]
        def run_warm(app) = run_fork_loop { prepare_warm(app) }

        private

        def run_fork_loop
          Process.setproctitle("heddle: mold")
          # While a mold loads the application, it does not notice that the master was killed. It would keep the
          # listening sockets open, so that no new server could start. So the kernel ends it 1 s after the master. The
          # kernel also ends the workers some time after the master, because they may be stuck ({#fork_worker}).
          Native::Processes.end_after_master(1)
          # Ctrl-C, or a closing terminal, sends its signal to all processes. Only the master reacts.
          %w[INT QUIT HUP].each { |name| trap(name) {} } # rubocop:disable Lint/EmptyBlock
          trap("TERM", "DEFAULT")
          @app = yield
          @channel.send_message("ready", pid: Process.pid, workers: @setting.configuration.worker_count)
          fork_workers
          exit_process(0)
        rescue SignalException
          exit_process(0)
        rescue BootError => e
          report_failure(e.message)
        rescue Exception => e
          reason = ProcessLimit.explain(e) || e.full_message(highlight: false)
          @setting.log.event(:mold_failed, error: reason.chomp)
          exit_process(1)
        end

        # Prepares this process for forking workers. Resets the statistics of stalls, which the workers would otherwise
        # inherit.
        def prepare_warm(app)
          Stalls.reset
          hooks.attempt(:after_mold)
          SharedHeap.pack
          app
        end

        def load_application
          configuration = @setting.configuration
          WorkingFolder.note # before the application can change the folder; the master may have, for a reload
          choose_patches(configuration)
          configuration.export_environment
          hooks.attempt(:before_mold)
          threads = BootThreads.new
          app = Adaptations::NewRelic.during_load(configuration, &@load)
          SolidQueue.check if configuration.solid_queue
          load_server_code
          adapt_libraries(configuration)
          hooks.attempt(:after_mold)
          threads.report(@setting.log)
          JIT.enable
          app = Modes.fetch(configuration.mode).share(app)
          SharedHeap.pack
          fit_memory
          app
        rescue SystemExit => e
          report_failure(BootError.ended(e).message)
        rescue LoadError => e
          report_failure(LoadFailure.new(e).message)
        end

        # Sets the number of workers if the option `workers` is auto. A worker's share of common limits depends on this
        # number.
        def fit_memory
          configuration = @setting.configuration.fit_memory(Memory.proportional, Memory.proportional(Process.ppid))
          @setting = @setting.with(configuration:)
        end

        # Chooses whether Ruby may be patched in this process and in its workers. The master is never patched.
        def choose_patches(configuration)
          reason = configuration.without_protection
          reason ? Scheduler::Patches.forbid(reason) : Scheduler::Patches.reset
        end

        def adapt_libraries(configuration)
          fibers = configuration.mode == :fiber
          Adaptations.start(configuration)
          Rails.start(fibers:) if defined?(::ActiveSupport)
          Databases.start(fibers:)
        end

        # Called before workers are forked, so that they share the memory. Called after the application is loaded,
        # because its Gemfile determines the versions of gems.
        def load_server_code
          Heddle.eager_load
          Server.load_everything
        end

        def report_failure(message)
          @channel.send_message("failed", message:)
          exit_process(1)
        end

        # Skips the application's at_exit blocks, which are meant for processes that serve.
        def exit_process(status)
          $stdout.flush
          $stderr.flush
          exit!(status)
        end

        def fork_workers
          while (message = @channel.wait("the master", @setting.log))
            spawn_process(message) if %w[spawn spawn_jobs].include?(message.what)
          end
        end

        # Forks a worker or the process of Solid Queue. Forks twice: the intermediate process ends at once, so that its
        # child becomes a child of the master. The master then gets the child's exit status.
        def spawn_process(message)
          slot = message.values["slot"]
          jobs = "jobs_" unless slot
          hooks.run(:before_worker_fork, message.values["index"]) unless jobs
          reader, writer = IO.pipe
          intermediate = ProcessLimit.forking { fork_intermediate(message, reader, writer) }
          writer.close
          pid = reader.read.to_i
          reader.close
          Process.wait(intermediate)
          raise ProcessLimit.failed_fork(-pid) if pid < 0
          # 0 must not be reported: a signal to process 0 goes to the master's whole process group.
          raise "the process that should have forked it was killed: see dmesg (memory may be short)" if pid.zero?

          @channel.send_message("#{jobs}spawned", slot:, pid:)
        rescue SignalException
          raise
        rescue Exception => e # a hook may raise anything, and the mold must continue to fork
          @channel.send_message("#{jobs}spawn_failed", slot:, message: ProcessLimit.explain(e) || ErrorText.summary(e))
        ensure
          message.io.close
        end

        def fork_intermediate(message, reader, writer)
          fork do
            # The worker inherits this handler, and later sets its own. Before that, it has no request that `exit!`
            # could cut off.
            trap("TERM") { exit!(0) }
            reader.close
            writer.write(fork_worker(message, writer).to_s)
          rescue Errno::EPIPE
            nil # the mold has ended
          ensure
            exit!(0)
          end
        end

        # @return [Integer] the process id; or the errno of the failed fork, negated
        def fork_worker(message, writer)
          fork do
            times = @setting.configuration.then { |found| [found.drain_delay, found.stop_timeout, Fleet::KILL_DELAY] }
            Native::Processes.end_after_master(times.sum.ceil)
            message.what == "spawn" ? run_worker(message, writer) : run_jobs(message, writer)
          end
        rescue SystemCallError => e
          -e.errno
        end

        def run_worker(message, writer)
          writer.close
          @channel.close
          Worker.new(@setting, index: message.values["index"], slot: message.values["slot"],
                               reserve: message.values["rank"], protect: message.values["protect"],
                               channel: MessageSocket.new(message.io)).run(@app)
        end

        def run_jobs(message, writer)
          writer.close
          @channel.close
          server = MessageSocket.new(message.io)
          SolidQueue.run { server.wait("the master", @setting.log) }
        end

        def hooks = @setting.configuration.hooks
      end
    end
  end
end
