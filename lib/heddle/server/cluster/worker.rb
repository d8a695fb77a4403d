# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # A worker process. It runs a {Server} on sockets that the master has opened, and receives the master's messages
      # over a channel. It is forked from the mold (the process that has loaded the application).
      class Worker
        # The resources that all workers get from the master.
        #
        # @!attribute configuration [Configuration]
        # @!attribute log [Log]
        # @!attribute resources [SharedResources]
        Setting = Data.define(:configuration, :log, :resources)

        # Maximum number of handed-off connections that are accepted in one tick of the loop.
        HANDOFFS_PER_TICK = 16
        # Seconds between two attempts to accept a handed-off connection, and between two checks whether all loops have
        # stopped accepting.
        RETRY_INTERVAL = 0.01
        # Seconds between two updates of lag, queue and limit in the scoreboard (shared memory with the load of each
        # worker).
        SCOREBOARD_INTERVAL = 1
        private_constant :HANDOFFS_PER_TICK, :RETRY_INTERVAL, :SCOREBOARD_INTERVAL

        # @return [Integer] its number, counted from 0; a replacement has the number of the worker that it replaces
        attr_reader :index
        # @return [Server]
        attr_reader :server

        # @param setting [Setting]
        # @param index [Integer] its number
        # @param slot [Integer] the index of its slot in the scoreboard
        # @param channel [MessageSocket] the channel to the master
        # @param reserve [Integer] its rank among the reserve workers (they serve only while all others are blocked); 0:
        #   it is not a reserve worker
        # @param protect [true, String, nil] see {Server#initialize}
        def initialize(setting, index:, slot:, channel:, reserve: 0, protect: nil)
          @setting = setting
          @index = index
          @slot = slot
          @reserve = reserve
          @protect = protect
          @channel = channel
          @mold_channel = nil
          @commands = Thread::Queue.new
        end

        # Serves until the master asks the worker to end, or until the master itself has ended. Never returns.
        # @param app [#call]
        def run(app)
          Process.setproctitle("heddle: #{"reserve " if @reserve.positive?}worker #{index}")
          %w[INT QUIT HUP].each { |name| OwnTrap.set(name) {} } # rubocop:disable Lint/EmptyBlock
          OwnTrap.set("TERM") { @channel.send_message("stop_request") }
          Pool::Registry.sharing = Net::PoolShares.new(resources.scoreboard, @slot)
          hooks.run(:worker_boot, index)
          exit(serve(app))
        rescue SystemExit
          raise
        rescue Exception => e
          report_failure(e)
          exit(1)
        end

        private

        def serve(app)
          @server = new_server
          @server.prepare_patches
          @status = WorkerStatus.new(@server, @setting.log)
          start_listener
          own_sockets = CopiedConnections.list unless @setting.configuration.refork_after.zero?
          answered = @server.run(app) { start_serving }
          report_totals(@server.engines)
          hooks.run(:worker_stop, index)
          fork_mold(app, own_sockets) if @mold_channel && answered
          answered
        end

        # When this worker has ended, the status of the server still includes these counts.
        def report_totals(engines)
          answers = engines.map(&:answers)
          @channel.send_message("totals", answered: answers.flatten.sum, failed: answers.sum { |one| one[5] },
                                          rejected: engines.sum(&:rejected), gone: @setting.log.gone)
        end

        # Forks the new mold, whose caches are filled because this process has served requests. Called when this process
        # no longer has a loop or connections. The mold gets only the main thread.
        def fork_mold(app, own_sockets)
          fork do
            @channel.close
            CopiedConnections.cut(own_sockets)
            MoldProcess.new(@setting, @mold_channel).run_warm(app)
          end
        rescue SystemCallError => e
          @setting.log.event(:mold_not_forked, worker: index, reason: e.message)
        ensure
          @mold_channel.close
        end

        def new_server
          @listeners = Listeners.new(resources.listeners, shared: true)
          Server.new(@setting.configuration,
                     log: @setting.log, listeners: @listeners,
                     scoreboard_slot: [resources.scoreboard, @slot], reserve: @reserve,
                     handoff_sockets: [resources.handoff_sender, resources.handoff_receiver],
                     protect: @protect)
        end

        # Called in the loop.
        def start_serving
          Heddle.async(name: "master", background: true) { run_commands }
          Heddle.async(name: "handoff", background: true) { accept_handoffs }
          Heddle.async(name: "scoreboard", background: true) { update_scoreboard }
          @channel.send_message("ready", **Cluster.boot_details(@server))
        end

        # Starts the thread that receives the master's messages. The thread answers queries itself, even while the loop
        # is blocked, and passes commands to the loop. A ping is a command, because it checks that the loop runs.
        def start_listener
          thread = Thread.new do
            @setting.log.event(:master_lost, worker: index, reason: listen)
          ensure
            @commands.close
          end
          thread.name = "master"
          thread.report_on_exception = false
        end

        # @return [String] why no more messages arrive
        def listen
          while (message = @channel.wait("the master", @setting.log))
            handle_message(message)
          end
          @channel.failure&.message || "the master has ended"
        rescue Exception => e # one failed message must not prevent the next ones
          @setting.log.event(:message_failed, worker: index, error: ErrorText.summary(e), place: e.backtrace&.first)
          retry
        end

        def handle_message(message)
          case message.what
          when "query"
            # A recording runs on another thread, because it takes long, and the master may send other queries
            # meanwhile.
            message.values["what"] == "record" ? answer_in_thread(message) : answer_query(message)
          when "running_requests"
            @channel.send_message("running_requests", running: RunningRequests.describe(@server.running_requests))
          when "protect" then @server.protect(message.values["reason"])
          when "become_mold" then prepare_mold(message.io)
          else @commands << message.what
          end
        end

        # The worker forks the new mold only when it has stopped serving, after the master's message "leave".
        def prepare_mold(io)
          @listeners.keep_open
          @mold_channel = MessageSocket.new(io)
        end

        def answer_in_thread(message)
          Thread.new { answer_query(message) }
        rescue ThreadError # the system allows no more threads
          message.io.close
        end

        def answer_query(message)
          what, arguments = message.values.values_at("what", "arguments")
          message.io.sync = true # without a buffer, close has nothing to write and can't fail
          message.io.write(reply_to(what, arguments, message.io), "\0")
        rescue Errno::EPIPE
          nil # the master no longer waits for the reply
        rescue StandardError => e
          @setting.log.event(:query_failed, worker: index, question: what, error: ErrorText.summary(e))
        ensure
          message.io&.close
        end

        # @param asker [IO] the pipe for the reply
        # @return [String, nil] see {WorkerHandle#report}
        def reply_to(what, arguments, asker)
          case what
          when "status"
            Handoff.workers = arguments # the number of workers
            JSON.generate(@status.to_h)
          when "tasks" then @server.task_tree
          when "record" then record(arguments, asker)
          end
        end

        def record(seconds, asker)
          Recorder.record(seconds, @setting.configuration, asker)
        rescue Control::RejectedError => e
          e.message
        end

        def run_commands
          while (name = @commands.pop)
            run_command(name)
          end
          # The master has ended, so failed workers are no longer replaced. This worker answers the requests that it has
          # received, and ends.
          @server.stop
        end

        def run_command(name)
          case name
          when "ping" then @channel.send_message("pong")
          when "leave" then retire
          when "part" then @server.stop(handoff_sender: false)
          when "stop" then @server.stop
          when "now" then @server.stop(now: true)
          end
        end

        # Stops the server, and reports when all its loops have stopped accepting connections.
        def retire
          @server.stop(handoff_sender: resources.handoff_sender)
          sleep(RETRY_INTERVAL) while @server.statistics&.fetch(:accepting)
          @channel.send_message("stopped_accepting")
        end

        def accept_handoffs
          receiver = resources.handoff_receiver
          until @server.draining?
            await_handoff(receiver)
            last = nil
            HANDOFFS_PER_TICK.times { (last = !@server.draining? && @server.accept_handoff(receiver)) or break }
            # false: a handed-off connection waits, but this worker can't accept it now.
            sleep(last == false ? RETRY_INTERVAL : 0)
          end
        end

        # epoll can watch the socket only while this user has fewer watches than fs.epoll.max_user_watches (epoll(7)).
        # At that limit, epoll fails with ENOSPC, and this method returns after RETRY_INTERVAL instead.
        def await_handoff(receiver)
          receiver.wait_readable
        rescue SystemCallError => e
          @setting.log.event(:handoffs_not_watched, worker: index, reason: e.message) unless @polls
          @polls = true
          sleep(RETRY_INTERVAL)
        end

        def update_scoreboard
          loop do
            sleep(SCOREBOARD_INTERVAL)
            statistics = @server.statistics or next
            resources.scoreboard.write_load(@slot, statistics[:lag], statistics[:waiting], statistics[:limit])
          end
        end

        def resources = @setting.resources

        def hooks = @setting.configuration.hooks

        # A BootError is reported without a backtrace, because its message says what to do.
        def report_failure(error)
          reasons = [error, *ErrorText.cause(error)].map { |one| explain(one) || ErrorText.summary(one, indent: "") }
          backtrace = backtrace_lines(error).first(20) unless explain(error)
          @setting.log.event(:worker_failed, worker: index, error: reasons.join(", caused by "), backtrace:)
          place = " (#{backtrace.first})" if backtrace&.any?
          @channel.send_message("failed", message: "#{explain(error) || ErrorText.summary(error)}#{place}")
        end

        # Returns the backtrace without Heddle's own lines, unless it has no others.
        def backtrace_lines(error)
          all = ErrorText.backtrace(error)
          others = all.reject { |line| line.start_with?(AppLoader::OWN) || line.include?("/exe/heddle:") }
          others.empty? ? all : others
        end

        def explain(error) = error.is_a?(BootError) ? error.message : ProcessLimit.explain(error)
      end
    end
  end
end
