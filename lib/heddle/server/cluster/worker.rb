# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The process that serves: a {Server} on sockets that are open already, with a channel to the master.
      class Worker
        # The resources that the master gives to all workers.
        #
        # @!attribute configuration [Configuration]
        # @!attribute log [Log]
        # @!attribute resources [SharedResources]
        Setting = Data.define(:configuration, :log, :resources)

        # Connections accepted from other workers in one tick of the loop, at most.
        HANDOFFS_PER_TICK = 16
        # Seconds between two attempts to accept a handed-off connection, and between two checks of the drain.
        RETRY_INTERVAL = 0.01
        # Seconds between two updates of the scoreboard's values that change slowly.
        SCOREBOARD_INTERVAL = 1
        private_constant :HANDOFFS_PER_TICK, :RETRY_INTERVAL, :SCOREBOARD_INTERVAL

        # @return [Integer] counted from 0; a replacement has the index of the worker that it replaces
        attr_reader :index
        # @return [Server]
        attr_reader :server

        # @param setting [Setting]
        # @param index [Integer]
        # @param slot [Integer] of the scoreboard
        # @param channel [MessageSocket] to the master
        # @param reserve [Integer] its rank among the reserve workers; 0: it is not a reserve
        # @param protect [Boolean, String, nil] see {Server#initialize}
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

        # Never returns.
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
          answered = @server.run(app) { start_serving }
          hooks.run(:worker_stop, index)
          fork_mold(app) if @mold_channel && answered
          answered
        end

        # Called when this process no longer has a loop or connections. Its forked copy has only this thread, and forks
        # workers from an application that has served requests.
        def fork_mold(app)
          fork do
            @channel.close
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

        # The loop runs the commands; a ping is among them, because it checks that the loop runs. Queries of the master
        # are answered on this thread, also while the loop is blocked.
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
        rescue Exception => e # later messages do not depend on this one
          @setting.log.event(:message_failed, worker: index, error: ErrorText.summary(e), place: e.backtrace&.first)
          retry
        end

        def handle_message(message)
          case message.what
          when "query"
            # Records in another thread, because a recording takes long, and the master sends other queries meanwhile.
            message.values["what"] == "record" ? answer_in_thread(message) : answer_query(message)
          when "running_requests"
            @channel.send_message("running_requests", running: RunningRequests.describe(@server.running_requests))
          when "protect" then @server.protect(message.values["reason"])
          when "become_mold" then prepare_mold(message.io)
          else @commands << message.what
          end
        end

        # The worker becomes a mold later: it serves until the master sends "leave".
        def prepare_mold(io)
          @listeners.keep_open
          @mold_channel = MessageSocket.new(io)
        end

        def answer_in_thread(message)
          Thread.new { answer_query(message) }
        rescue ThreadError # the system has no room for a thread
          message.io.close
        end

        def answer_query(message)
          what, arguments = message.values.values_at("what", "arguments")
          message.io.sync = true # so that closing writes nothing, which might fail
          message.io.write(reply_to(what, arguments, message.io), "\0")
        rescue Errno::EPIPE
          nil # the master no longer waits
        rescue StandardError => e
          @setting.log.event(:query_failed, worker: index, question: what, error: "#{e.class}: #{e.message}")
        ensure
          message.io&.close
        end

        # @param asker [IO] takes the reply
        # @return [String, nil] see {WorkerHandle#report}
        def reply_to(what, arguments, asker)
          case what
          when "status"
            Handoff.workers = arguments # how many there are
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
          # The master has ended, so no worker would be replaced any more. This one answers queued requests, and ends.
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

        # Waits until all loops of this process have stopped accepting.
        def retire
          @server.stop(handoff_sender: resources.handoff_sender)
          sleep(RETRY_INTERVAL) while @server.statistics&.fetch(:accepting)
          @channel.send_message("stopped_accepting")
        end

        def accept_handoffs
          receiver = resources.handoff_receiver
          until @server.draining?
            receiver.wait_readable
            accepted = 0
            while accepted < HANDOFFS_PER_TICK && !@server.draining? && (last = @server.accept_handoff(receiver))
              accepted += 1
            end
            # false: a connection waits that this worker can't accept now.
            sleep(last == false ? RETRY_INTERVAL : 0)
          end
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

        # The message of a BootError says what to do; its backtrace would add nothing.
        def report_failure(error)
          reasons = [error, *error.cause].map { |one| explain(one) || "#{one.class}: #{one}" }
          backtrace = backtrace_lines(error).first(20) unless explain(error)
          @setting.log.event(:worker_failed, worker: index, error: reasons.join(", caused by "), backtrace:)
          place = " (#{backtrace.first})" if backtrace&.any?
          @channel.send_message("failed", message: "#{explain(error) || ErrorText.summary(error)}#{place}")
        end

        # The application's and the configuration's lines; Heddle's own only if there are no others.
        def backtrace_lines(error)
          all = error.backtrace || []
          others = all.reject { |line| line.start_with?(AppLoader::OWN) || line.include?("/exe/heddle:") }
          others.empty? ? all : others
        end

        def explain(error) = error.is_a?(BootError) ? error.message : ProcessLimit.explain(error)
      end
    end
  end
end
