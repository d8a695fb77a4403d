# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Replaces the workers one by one with workers of a new mold. Each one must serve before the next is replaced.
      class RollingRestart
        # @param fleet [Fleet]
        # @param mold [MoldHandle] that is loading
        # @param log [#event]
        # @param name [Symbol] :reload or :refork
        # @param done [#call] called at the end with two arguments: the mold that is no longer needed, or nil; and why
        #   the old workers were kept, or nil
        def initialize(fleet, mold, log, name: :reload, &done)
          @fleet = fleet
          @mold = mold
          @log = log
          @name = name
          @done = done
          @activated = false
          @former = nil
          @current = nil
          @replaced = 0
        end

        # @return [MoldHandle] the new one
        attr_reader :mold

        # Replaces the next worker when the last new one serves.
        # @return [void]
        def advance
          return unless mold.ready?

          activate unless @activated
          return roll_back(@current.failure) if @current&.failure
          return if @current && !@current.serving? && @fleet.workers.include?(@current)

          old = @fleet.serving.find { |worker| !worker.mold.equal?(mold) }
          return replace(old) if old
          return if @fleet.workers.any? { |worker| worker.state == :starting || former?(worker) }

          @log.event(:"#{@name}ed", workers: @replaced)
          @done.call(@former, nil)
        end

        # @param reason [String, nil] why the reload ends early; nil if that was requested
        # @return [void]
        def abandon(reason)
          @log.event(:"#{@name}_failed", reason:) if reason
          roll_back(reason)
        end

        private

        def roll_back(reason)
          return @done.call(mold, reason) unless @activated
          return @done.call(nil, reason) if @former.nil? || @former.channel_closed? # no former mold is left

          @fleet.mold = @former
          @done.call(mold, reason)
        end

        def activate
          @activated = true
          @former = @fleet.mold
          @fleet.mold = mold
          # A warm mold has the configuration of its predecessor. Numbers of workers that an operator has set since then
          # stay.
          @fleet.resize(mold.configuration.worker_count) unless mold.warm
        end

        # @return [Boolean] whether a worker with the previous code may still accept a connection
        def former?(worker) = worker.accepting && !worker.mold.equal?(mold)

        def replace(old)
          @current = @fleet.start(old.index, replaces: old) or return # tried again when another worker has ended
          @replaced += 1 unless old.reserve?
        end
      end
    end
  end
end
