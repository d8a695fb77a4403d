# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a mold.
      class MoldHandle
        # @return [Integer, nil] nil: it still is a worker
        attr_accessor :pid
        # @return [MessageSocket] to it
        attr_reader :channel
        # @return [Integer] which one it is since the start, counted from 1
        attr_reader :generation
        # @return [Configuration] the configuration of its workers
        attr_accessor :configuration
        # @return [Float]
        attr_reader :started_at
        # @return [Boolean] whether it needs no refork: it was a worker itself, or one of its workers was asked to
        #   become a mold
        attr_accessor :warm
        # @return [Symbol] :loading, :ready or :ending
        attr_accessor :state
        # @return [String, nil] why it could not load the application
        attr_accessor :failure

        def initialize(pid:, channel:, generation:, configuration:, now:)
          @pid = pid
          @channel = channel
          @generation = generation
          @configuration = configuration
          @started_at = now
          @state = :loading
          @warm = false
        end

        # @return [Boolean]
        def ready? = state == :ready

        # @return [Boolean] whether its channel is closed
        def channel_closed? = channel.io.closed?

        # Kills the mold: it holds nothing that another process needs.
        # @return [void]
        def kill
          self.state = :ending
          pid ? Process.kill("KILL", pid) : channel.close
        rescue Errno::ESRCH
          # It has ended by itself.
        end
      end
    end
  end
end
