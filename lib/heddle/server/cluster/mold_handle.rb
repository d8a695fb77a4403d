# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a mold. A mold is a process that has loaded the application, and that workers are forked
      # from. A warm mold was forked from a worker that had served, so its caches are filled.
      #
      # @!attribute pid [Integer, nil] the process id; nil: a worker was asked to fork this mold, and the mold is not
      #   ready yet
      # @!attribute channel [MessageSocket] the channel to it
      # @!attribute generation [Integer] the molds of a server are numbered in the order of their start, beginning with
      #   1
      # @!attribute configuration [Configuration] the configuration of its workers
      # @!attribute started_at [Float] the time of its start ({MonotonicClock})
      # @!attribute warm [Boolean] whether the mold was forked from a worker, or one of its own workers was asked to
      #   fork a mold. In both cases, no further worker of this mold is asked
      # @!attribute state [Symbol] :loading, :ready or :ending
      # @!attribute failure [String, nil] why it ended, if that is known
      MoldHandle = Struct.new(:pid, :channel, :generation, :configuration, :started_at, :warm, :state, :failure) do
        def initialize(now:, **) = super(started_at: now, state: :loading, warm: false, **)

        # @return [Boolean] whether it can fork workers
        def ready? = state == :ready

        # @return [Boolean] whether its channel is closed
        def channel_closed? = channel.io.closed?

        # Kills the mold because it does not respond. {MoldSupervisor#handle_exit} acts on its end.
        # @param reason [String]
        # @return [void]
        def kill_stuck(reason)
          self.failure = reason
          Process.kill("KILL", pid)
        rescue Errno::ESRCH
          # It has already ended.
        end

        # Kills a mold that is no longer needed. It can be killed at any moment, because it serves nothing. If a worker
        # was asked to fork it and `pid` is still nil, only closes the channel.
        # @return [void]
        def kill
          self.state = :ending
          pid ? Process.kill("KILL", pid) : channel.close
        rescue Errno::ESRCH
          # It has already ended.
        end
      end
    end
  end
end
