# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Status and commands of a server with a master and workers. Each worker reports its own status. A worker that
      # does not respond is listed as stuck, with its values in the scoreboard (memory that all processes share).
      class Cluster
        # Seconds that a worker may take to respond.
        TIMEOUT = 1.5
        # The server counts as dead when all loops have been blocked for this many seconds.
        DEAD_AFTER = 30
        RESPONSES = {
          "stop" => "stopping as soon as the running requests are answered", "stop-now" => "stopping at once",
          "reload" => "replacing the workers one by one; the log reports the progress",
          "restart" => "starting a new master, which takes over when its workers serve",
          "protect-on" => "switching the protections of all workers on; heddle status shows them",
          "protect-off" => "switching the protections of all workers off; heddle status shows them"
        }.freeze
        # The commands that a client can wait for, and the response when they are done.
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

        # @return [Hash{Symbol => Object}] the status of the master, its certificates and its workers
        def report
          { master: { pid: Process.pid, restarts: @master.fleet&.restarts, wanted: @master.fleet&.size,
                      ended_workers: @master.fleet&.totals,
                      pubsub_published: PubSub::History.published, protection: @master.protection.to_h,
                      memory: @master.memory&.used, memory_limit: @master.memory&.budget,
                      events: @log.counts },
            certificates: @master.resources&.certificates.to_a.flat_map(&:expiries).uniq,
            workers: ask_all("status", processes) { |one, text| text ? parse_status(one, text) : known_status(one) } }
        end

        # @return [String, nil] why no requests should be sent to this server; nil: it is ready
        def unready
          return "the server is stopping" if @master.stopping?

          "no worker serves yet" if handles.none?(&:serving?)
        end

        # @return [String, nil] why the server should be restarted; nil: it is alive. One stuck worker is no reason for
        #   a restart, because the master replaces that worker.
        def dead
          serving = handles.select(&:serving?)
          seconds = serving.map { |one| scoreboard(one)[:busy_for] || 0 }.min
          "the loops of all workers have been blocked for #{seconds.round(1)} s" if seconds && seconds > DEAD_AFTER
        end

        # @return [String] a tree of the tasks of every worker, with the place where each one waits
        def tasks
          ask_all("tasks") { |one, text| "#{one.name}:\n#{text || "no response\n"}" }.join("\n")
        end

        # @param seconds [Float]
        # @return [String] a line for each worker: the path of the file that it has written, or why it has written none
        # @raise [RejectedError] if no worker has written a file
        def record(seconds)
          lines = ask_all("record", seconds, timeout: seconds + Client::RECORD_TIMEOUT) do |one, text|
            "#{one.name}: #{text || "no response"}"
          end
          raise RejectedError, "no worker serves yet" if lines.empty?
          raise RejectedError, lines.join("\n") if lines.none? { |line| line.end_with?(".json") }

          lines.join("\n")
        end

        # @param name [String] the command, such as "reload"
        # @param wait [Boolean] whether to return only when the command is done; ignored for commands that are not in
        #   RESULTS
        # @return [String] what the server does now, or has done
        # @raise [RejectedError] if the command failed; only with `wait`
        def command(name, wait: false)
          result = Thread::Queue.new if wait && RESULTS.key?(name)
          @commands << [name, result]
          @writer.write_nonblock(".", exception: false)
          return RESPONSES.fetch(name) unless result

          problem, = result.pop
          raise RejectedError, "not #{RESULTS.fetch(name)[/\w+/]}: #{problem}" if problem

          RESULTS.fetch(name)
        end

        # Closes the pipe for commands.
        # @return [void]
        def close = [@reader, @writer].each(&:close)

        # @return [Control, nil] the control sockets that serve this object's status
        attr_accessor :control

        # Called in a forked child. Closes its copies of the master's sockets and pipe.
        # @return [void]
        def close_in_child
          control&.close_in_child
          [@reader, @writer].each { |io| io.close unless io.closed? }
        end

        private

        # Called on the master's own thread, the only one that may run commands.
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

        # The number of workers that should run (the signals TTIN and TTOU change it), plus the number of reserve
        # workers.
        def processes = (@master.fleet&.size || 0) + @master.configuration.reserve_count

        # Asks all workers at the same time, because the wait for a stuck worker lasts until the time limit.
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

        # Builds the status of a worker that does not respond, from the records of the master and the scoreboard.
        def known_status(one)
          return { index: one.index, pid: one.pid, state: one.state.to_s } unless one.serving?

          heard = (MonotonicClock.now - one.last_message_at).round(1)
          known = scoreboard(one)
          in_flight, waiting = known.values_at(:in_flight, :waiting)
          running = in_flight && [in_flight - waiting, 0].max # in_flight includes waiting requests
          { index: one.index, pid: one.pid, state: "stuck", running:, waiting:,
            connections: known[:connections], lag: known[:lag], heartbeat_age: known[:busy_for],
            problem: "does not respond within #{TIMEOUT} s; its last message to the master was #{heard} s ago" }.compact
        end

        def scoreboard(one) = @master.resources.scoreboard.read(one.slot) || {}
      end
    end
  end
end
