# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a mold.
      #
      # @!attribute pid [Integer, nil] nil: it still is a worker
      # @!attribute channel [MessageSocket] to it
      # @!attribute generation [Integer] its number among all molds since the start, counted from 1
      # @!attribute configuration [Configuration] the configuration of its workers
      # @!attribute started_at [Float]
      # @!attribute warm [Boolean] whether it needs no refork, because it was a worker, or one of its workers was
      #   asked to become a mold
      # @!attribute state [Symbol] :loading, :ready or :ending
      # @!attribute failure [String, nil] why it has ended
      MoldHandle = Struct.new(:pid, :channel, :generation, :configuration, :started_at, :warm, :state, :failure) do
        def initialize(now:, **) = super(started_at: now, state: :loading, warm: false, **)

        # @return [Boolean]
        def ready? = state == :ready

        # @return [Boolean] whether its channel is closed
        def channel_closed? = channel.io.closed?

        # Kills the mold because it does not answer; another one is loaded.
        # @param reason [String]
        # @return [void]
        def kill_stuck(reason)
          self.failure = reason
          Process.kill("KILL", pid)
        rescue Errno::ESRCH
          # It has ended already.
        end

        # Kills the mold, which has nothing that another process needs.
        # @return [void]
        def kill
          self.state = :ending
          pid ? Process.kill("KILL", pid) : channel.close
        rescue Errno::ESRCH
          # It has ended already.
        end
      end
    end
  end
end
