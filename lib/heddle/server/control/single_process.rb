# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Status and commands of a server with a single process.
      class SingleProcess
        # Seconds without a heartbeat after which the process counts as dead.
        DEAD_AFTER = 30
        private_constant :DEAD_AFTER

        # @param server [Server]
        # @param log [Log]
        def initialize(server, log)
          @server = server
          @log = log
          @status = WorkerStatus.new(server, log)
        end

        # @return [Hash{Symbol => Object}] the status of the process and its certificates
        def report
          { certificates: @server.certificates.flat_map(&:expiries).uniq, workers: [{ index: 0, **@status.to_h }] }
        end

        # @return [String, nil] why no requests should be sent to this server; nil: it is ready
        def unready
          return "the server is stopping" if @server.stopping?

          "the server is starting" unless @server.statistics
        end

        # @return [String, nil] why the process should be restarted; nil: it is alive
        def dead
          age = @server.statistics&.fetch(:heartbeat_age, nil)
          "no heartbeat of the loop for #{age.round(1)} s" if age && age > DEAD_AFTER
        end

        # @return [String] a tree of the loop's tasks, with the place where each one waits
        def tasks = @server.task_tree

        # @param name [String] the command, such as "stop"
        # @return [String] what the server does now
        # @raise [RejectedError] if the command needs a master, or fails
        def command(name, **)
          case name
          when "stop"
            @log.event(:stop_requested, source: "heddle stop", drain_delay: @server.configuration.drain_time)
            @server.stop
            "stopping as soon as the running requests are answered"
          when "stop-now"
            @log.event(:stop_now_requested, source: "heddle stop --now")
            @server.stop(now: true)
            "stopping at once"
          when "protect-on", "protect-off" then protect(name == "protect-on")
          else
            raise RejectedError, "a server with one process can't #{name}. Stop it and start it again, or start it " \
                                 "with --workers 2"
          end
        end

        # @param seconds [Float]
        # @return [String] the path of the file
        # @raise [RejectedError]
        def record(seconds) = Recorder.record(seconds, @server.configuration)

        private

        def protect(on)
          word = on ? "on" : "off"
          @server.protect(on ? nil : "heddle protect off")
          @log.event(:protections_switched, state: word)
          "protections switched #{word}; heddle status shows them"
        rescue SystemCallError => e
          raise RejectedError, "the protections can't be switched #{word}: #{e.message}"
        end
      end
    end
  end
end
