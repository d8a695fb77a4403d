# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Replaces the workers one by one with workers of a new mold (the process that workers are forked from). Each new
      # worker must serve before the next old one is replaced.
      class RollingRestart
        # @param fleet [Fleet]
        # @param mold [MoldHandle] the new mold, which may still be loading
        # @param log [#event]
        # @param name [Symbol] :reload or :refork
        # @param done [#call] called at the end. Its arguments are the mold that is no longer needed (or nil), and the
        #   reason why the old workers were kept (nil: they were replaced)
        def initialize(fleet, mold, log, name: :reload, &done)
          @fleet = fleet
          @mold = mold
          @log = log
          @name = name
          @done = done
          @activated = false
          @former = @current = @size = nil
        end

        # @return [MoldHandle] the new mold
        attr_reader :mold

        # Starts to replace the next worker, if the previous replacement serves. Ends the whole replacement when it is
        # complete or has failed. Must be called again and again until then.
        # @return [void]
        def advance
          return unless mold.ready?

          activate unless @activated
          return roll_back(@current.failure) if @current&.failure
          return if @current && !@current.serving? && @fleet.workers.include?(@current)

          old = @fleet.serving.find { |worker| !worker.mold.equal?(mold) }
          # If no worker can be started now, @current is nil, and the next call tries again.
          return @current = @fleet.start(old.index, replaces: old) if old
          return if @fleet.workers.any? { |worker| worker.state == :starting || former?(worker) }

          @log.event(:"#{@name}ed", workers: @fleet.serving.count { |worker| !worker.reserve? })
          @done.call(@former, nil)
        end

        # Ends the whole replacement early.
        # @param reason [String] the reason for the log
        # @return [void]
        def abandon(reason)
          @log.event(:"#{@name}_failed", reason:)
          roll_back(reason)
        end

        private

        def roll_back(reason)
          return @done.call(mold, reason) unless @activated
          return @done.call(nil, reason) if @former.nil? || @former.channel_closed? # the former mold has ended

          @fleet.mold = @former
          @fleet.resize(@size) if @size
          @done.call(mold, reason)
        end

        def activate
          @activated = true
          @former = @fleet.mold
          @fleet.mold = mold
          # A warm mold (one that a worker has forked) has the same configuration as the mold before it. So the fleet
          # keeps its size, which an operator may have changed since the start.
          return if mold.warm

          @size = @fleet.size
          @fleet.resize(mold.configuration.worker_count)
        end

        # @return [Boolean] whether a worker with the previous code may still accept a connection
        def former?(worker) = worker.accepting && !worker.mold.equal?(mold)
      end
    end
  end
end
