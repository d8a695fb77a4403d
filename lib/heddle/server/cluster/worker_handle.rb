# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a worker.
      #
      # @!attribute index [Integer] its number in logs and metrics: a replacement has the number of the worker that it
      #   replaces
      # @!attribute rank [Integer] among the reserve workers, counted from 1; 0: it is not a reserve
      # @!attribute slot [Integer] of the scoreboard
      # @!attribute channel [MessageSocket] to it
      # @!attribute mold [MoldHandle] the mold that forked it
      # @!attribute replaces [WorkerHandle, nil] the worker that ends as soon as this one serves; nil from then on,
      #   because its end no longer means that the replacement has failed
      # @!attribute started_at [Float] when the mold was asked to fork it
      # @!attribute pid [Integer, nil] once it is known
      # @!attribute forked_at [Float, nil] when the mold reported its fork
      # @!attribute ready_at [Float, nil] when it began to serve
      # @!attribute state [Symbol] :starting, :serving or :ending
      # @!attribute last_message_at [Float] when its last message arrived
      # @!attribute accepting [Boolean] whether it accepts connections, or is going to; an ending worker does so until
      #   it reports otherwise
      # @!attribute channel_closed [Boolean] whether the worker has closed its end of the channel
      # @!attribute deadline [Float, nil] when it is killed, unless it has ended by then
      # @!attribute protect [Boolean, String, nil] its protections: see {Server#initialize}
      # @!attribute reason [String, nil] why the master has ended it; follows its name in log lines
      # @!attribute crash [String, nil] the signal whose report hung, so that the master has killed it
      # @!attribute error [String, nil] why it ends, as it has reported
      # @!attribute limit_share [Float] its limits of memory, requests and age are up to a tenth lower than the options,
      #   so that not all workers reach theirs at once
      # @!attribute failure [String, nil] how it has ended before it could take the place of the worker that it replaces
      WorkerHandle = Struct.new(:index, :rank, :slot, :channel, :mold, :replaces, :started_at, :pid, :forked_at,
                                :ready_at, :state, :last_message_at, :accepting, :channel_closed, :deadline, :protect,
                                :reason, :crash, :error, :limit_share, :failure) do
        def initialize(now:, rank: 0, **)
          super(rank:, started_at: now, last_message_at: now, state: :starting, accepting: true,
                limit_share: rand(0.9..1.0), **)
        end

        # Records that the worker accepts requests.
        # @param now [Float]
        # @return [WorkerHandle, nil] the worker that it replaces
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

        # @return [Hash{Symbol => Object}] the fields of events about it
        def fields = { role: "#{"reserve " if reserve?}worker", worker: index, pid: }

        # @return [String]
        def name = "#{"reserve " if reserve?}worker #{index}#{" (pid #{pid})" if pid}"

        # Reads a report of any length, through a pipe of its own. Safe from any thread.
        # @param what [String] see {Worker#reply_to}
        # @param timeout [Numeric] seconds
        # @param arguments [Object] as JSON
        # @return [String, nil] nil: there was none
        def report(what, timeout, arguments = nil)
          reader, writer = IO.pipe(Encoding::UTF_8)
          return unless channel.send_message("query", what:, arguments:, io: writer)

          writer.close
          reader.timeout = timeout
          # The reply ends with a mark, because a process that was forked meanwhile may keep the pipe open.
          reader.gets("\0")&.chomp!("\0")
        rescue SystemCallError, IOError
          nil
        ensure
          reader&.close
          writer&.close
        end

        # @param name [String] a signal
        # @return [void]
        def kill(name)
          Process.kill(name, pid) if pid
        rescue Errno::ESRCH
          # It has ended already.
        end
      end
    end
  end
end
