# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Status and commands of a master with its workers. Each worker reports its own status. A worker that does not
      # answer is shown as stuck, with its values on the scoreboard.
      class Cluster
        # Seconds that a worker may take to answer.
        TIMEOUT = 1.5
        # Seconds that all loops may be blocked before the server counts as dead.
        DEAD_AFTER = 30
        RESPONSES = {
          "stop" => "stopping when running requests are answered", "stop-now" => "stopping at once",
          "reload" => "new workers replace the old ones, one by one; the log reports the progress",
          "restart" => "a new master is started, and takes over when its workers serve",
          "protect-on" => "switching the protections of all workers on; heddle status shows them",
          "protect-off" => "switching the protections of all workers off; heddle status shows them"
        }.freeze
        # The commands whose end can be waited for, with the response.
        RESULTS = { "reload" => "reloaded: new workers serve", "restart" => "restarted: a new master serves" }.freeze
        private_constant :TIMEOUT, :DEAD_AFTER, :RESPONSES, :RESULTS

        # @param master [Server::Cluster::Master]
        # @param log [Log]
        def initialize(master, log)
          @master = master
          @log = log
          @commands = Thread::Queue.new
          @reader, @writer = IO.pipe
          master.watch(@reader) { run_commands }
        end

        # @return [Hash{Symbol => Object}]
        def report
          { master: { pid: Process.pid, restarts: @master.fleet&.restarts, wanted: @master.fleet&.size,
                      pubsub_published: PubSub::History.published, protection: @master.protection.to_h,
                      memory: @master.memory&.used, memory_limit: @master.memory&.budget,
                      events: @log.counts },
            certificates: @master.resources&.certificates.to_a.flat_map(&:expiries).uniq,
            workers: ask_all("status", processes) { |one, text| text ? parse_status(one, text) : known_status(one) } }
        end

        # @return [String, nil] why no request should be sent here; nil: it is ready
        def unready
          return "the server stops" if @master.stopping?

          "no worker serves yet" if handles.none?(&:serving?)
        end

        # @return [String, nil] why the server should be ended; nil: it is alive. The master replaces a single stuck
        #   worker.
        def dead
          serving = handles.select(&:serving?)
          blocked = serving.map { |one| scoreboard(one)[:busy_for] || 0 }
          "no worker's loop has run for #{blocked.min.round(1)} s" if blocked.any? && blocked.min > DEAD_AFTER
        end

        # @return [String] every task of every worker, and where it waits
        def tasks
          ask_all("tasks") { |one, text| "#{one.name}:\n#{text || "no answer\n"}" }.join("\n")
        end

        # @param seconds [Float]
        # @return [String] the files, one of each worker
        # @raise [RejectedError]
        def record(seconds)
          lines = ask_all("record", seconds, timeout: seconds + Client::RECORD_TIMEOUT) do |one, text|
            "#{one.name}: #{text || "no answer"}"
          end
          raise RejectedError, "no worker serves yet" if lines.empty?
          raise RejectedError, lines.join("\n") if lines.none? { |line| line.end_with?(".json") }

          lines.join("\n")
        end

        # @param name [String] of a command
        # @param wait [Boolean] whether to return when it is done, where that can be known
        # @return [String] what happens now, or has happened
        # @raise [RejectedError] when it could not be done
        def command(name, wait: false)
          result = Thread::Queue.new if wait && RESULTS.key?(name)
          @commands << [name, result]
          @writer.write_nonblock(".", exception: false)
          return RESPONSES.fetch(name) unless result

          problem, = result.pop
          raise RejectedError, "not #{RESULTS.fetch(name)[/\w+/]}: #{problem}" if problem

          RESULTS.fetch(name)
        end

        # @return [void]
        def close = [@reader, @writer].each(&:close)

        # @return [Control, nil] the control sockets that use this
        attr_accessor :control

        # Called in a child: closes the master's own resources.
        # @return [void]
        def close_in_child
          control&.close_in_child
          [@reader, @writer].each { |io| io.close unless io.closed? }
        end

        private

        # Runs in the master's thread, because no other thread may run commands.
        def run_commands
          @reader.read_nonblock(100, exception: false)
          run_command(*@commands.pop) until @commands.empty?
        end

        def run_command(name, result)
          case name
          when "stop"
            @log.event(:stop_requested, source: "heddle stop", drain_delay: @master.configuration.drain_time)
            @master.stop
          when "stop-now"
            @log.event(:stop_now_requested, source: "heddle stop --now")
            @master.stop(now: true)
          when "reload"
            @log.event(:reload_requested, source: "heddle reload")
            @master.reload { |problem| result&.push([problem]) }
          when "restart" then @master.restart { |problem| result&.push([problem]) }
          else
            @log.event(:protections_switched, state: name.delete_prefix("protect-"))
            @master.protect(name == "protect-on")
          end
        end

        def handles = @master.fleet&.workers || []

        # The wanted number of workers and reserves, after TTIN and TTOU.
        def processes = (@master.fleet&.size || 0) + @master.configuration.reserve_count

        # Asks all workers at once, because each stuck one takes until the time limit.
        def ask_all(what, arguments = nil, timeout: TIMEOUT)
          asked = handles.map do |one|
            [one, Heddle.async { one.report(what, timeout, arguments) unless one.state == :starting }]
          end
          asked.map { |one, task| yield one, task.value }
        end

        def parse_status(one, text)
          status = JSON.parse(text, symbolize_names: true)
          { **status, index: one.index, state: one.ending? ? "ending" : status[:state] }
        end

        # The status of a worker that does not answer, from the master's record and the scoreboard.
        def known_status(one)
          return { index: one.index, pid: one.pid, state: one.state.to_s } unless one.serving?

          heard = (MonotonicClock.now - one.last_message_at).round(1)
          known = scoreboard(one)
          running = known[:in_flight] && [known[:in_flight] - known[:waiting], 0].max # in_flight: those that wait, too
          { index: one.index, pid: one.pid, state: "stuck", running:, waiting: known[:waiting],
            connections: known[:connections], lag: known[:lag], heartbeat_age: known[:busy_for],
            problem: "does not answer within #{TIMEOUT} s; its last message to the master is #{heard} s old" }.compact
        end

        def scoreboard(one) = @master.resources.scoreboard.read(one.slot) || {}
      end
    end
  end
end
