# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a worker.
      #
      # @!attribute index [Integer] its number in logs and metrics; a replacement has the number of the worker that it
      #   replaces
      # @!attribute rank [Integer] its rank among the reserve workers (they serve only while all others are blocked),
      #   counted from 1; 0: it is not a reserve worker
      # @!attribute slot [Integer] the index of its slot in the scoreboard (shared memory with the load of each worker)
      # @!attribute channel [MessageSocket] the channel to it
      # @!attribute mold [MoldHandle] the mold that forks it (a process that has loaded the application)
      # @!attribute replaces [WorkerHandle, nil] the worker that is asked to end as soon as this one serves; nil from
      #   then on
      # @!attribute started_at [Float] the time at which the mold was asked to fork it
      # @!attribute pid [Integer, nil] its process id; nil: the mold has not reported it yet
      # @!attribute forked_at [Float, nil] the time at which the mold reported its fork
      # @!attribute ready_at [Float, nil] the time at which it began to serve
      # @!attribute state [Symbol] :starting, :serving or :ending
      # @!attribute last_message_at [Float] the time at which its last message arrived
      # @!attribute accepting [Boolean] whether it accepts connections, or will; true until an ending worker reports
      #   that it has stopped accepting
      # @!attribute channel_closed [Boolean] whether the worker has closed its end of the channel
      # @!attribute deadline [Float, nil] the time at which it is killed unless it has ended
      # @!attribute protect [true, String, nil] its protections, see {Server#initialize}
      # @!attribute reason [String, nil] why the master kills it; in log lines this text follows the worker's name
      # @!attribute crash [String, nil] the signal of its crash, if the master killed it because the crash report hung
      # @!attribute error [String, nil] why it ends, as the worker itself has reported
      # @!attribute limit_share [Float] the factor for its limits of memory, requests and age. It is random, between 0.9
      #   and 1, so that workers don't reach their limits at the same time
      # @!attribute failure [String, nil] why it has ended before it could replace the worker in `replaces`
      # @!attribute totals [Hash{Symbol => Integer}, nil] how many requests it has answered, has answered with 5xx
      #   (`failed`) and has rejected, and how many clients left before their response was complete (`gone`), as it has
      #   reported at its end; nil: it has not reported this
      WorkerHandle = Struct.new(:index, :rank, :slot, :channel, :mold, :replaces, :started_at, :pid, :forked_at,
                                :ready_at, :state, :last_message_at, :accepting, :channel_closed, :deadline, :protect,
                                :reason, :crash, :error, :limit_share, :failure, :totals) do
        def initialize(now:, rank: 0, **)
          super(rank:, started_at: now, last_message_at: now, state: :starting, accepting: true,
                limit_share: rand(0.9..1.0), **)
        end

        # Records that the worker accepts requests.
        # @param now [Float] the time in seconds
        # @return [WorkerHandle, nil] the worker that it replaces; nil: it replaces none
        def mark_serving(now)
          self.state = :serving
          self.ready_at = now
          replaced = replaces
          self.replaces = nil
          replaced
        end

        # @return [Boolean]
        def serving? = state == :serving

        # @return [Boolean]
        def ending? = state == :ending

        # @return [Boolean]
        def reserve? = rank.positive?

        # @return [Hash{Symbol => Object}] the fields that events about it have
        def fields = { role: "#{"reserve " if reserve?}worker", worker: index, pid: }

        # @return [String]
        def name = "#{"reserve " if reserve?}worker #{index}#{" (pid #{pid})" if pid}"

        # Asks the worker for a report, and waits for it. The report may have any length, because it is sent over a
        # separate pipe. May be called from any thread.
        # @param what [String] the kind of report, see {Worker#reply_to}
        # @param timeout [Numeric] seconds to wait for the report
        # @param arguments [Object] a value that JSON can represent
        # @return [String, nil] the report; nil: the worker did not send it in time, or can't be reached
        def report(what, timeout, arguments = nil)
          IO.pipe(Encoding::UTF_8) do |reader, writer|
            next unless channel.send_message("query", what:, arguments:, io: writer)

            writer.close
            reader.timeout = timeout
            # The reply ends with a zero byte. The end of the pipe can't mark the end of the reply, because a process
            # that was forked meanwhile may keep the pipe open.
            reader.gets("\0")&.chomp!("\0")
          end
        rescue SystemCallError, IOError
          nil
        end

        # Kills it at once.
        # @param why [String, nil] becomes the `reason`, unless the worker has one; nil: the worker has one
        # @return [void]
        def kill(why = nil)
          self.reason ||= why
          Process.kill("KILL", pid) if pid
        rescue Errno::ESRCH
          # It has already ended.
        end
      end
    end
  end
end
