# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of a mold.
      class MoldHandle
        # @return [Integer, nil] nil: it is a worker still
        attr_accessor :pid
        # @return [MessageSocket] to it
        attr_reader :channel
        # @return [Integer] which one it is since the start, counted from 1
        attr_reader :generation
        # @return [Configuration] the configuration of its workers
        attr_reader :configuration
        # @return [Float]
        attr_reader :born
        # @return [Boolean] whether its workers' successors need no warmer mold: it was a worker itself, or one of them
        #   was asked to become a mold
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
          @born = now
          @state = :loading
          @warm = false
          @malformed = false
        end

        # @return [Boolean]
        def ready? = state == :ready

        # @return [Boolean] whether it will say nothing any more
        def silent? = channel.io.closed?

        # It has sent what is no message.
        # @yield for the first one only: a log that repeats it would fill a disk
        # @return [void]
        def malformed
          yield unless @malformed
          @malformed = true
        end

        # It keeps nothing that another process misses.
        # @return [void]
        def end!
          self.state = :ending
          pid ? Process.kill("KILL", pid) : channel.close
        rescue Errno::ESRCH
          # It has ended by itself.
        end
      end
    end
  end
end
