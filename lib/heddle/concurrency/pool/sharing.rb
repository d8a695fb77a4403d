# frozen_string_literal: true

module Heddle
  # The part of {Pool} for the limit of all workers together (`max_total`). Each resource needs a share of this limit.
  class Pool
    # The pools of this process or Ractor, and the source of their shares.
    #
    # @api private
    module Registry
      # The greatest possible value of `max_total`.
      LARGEST_TOTAL = 1024

      class << self
        # @return [ObjectSpace::WeakMap] its keys are the pools
        def pools = Ractor.current[:heddle_pools] ||= ObjectSpace::WeakMap.new

        # Pools with `max_total` get their shares from this object: `open(name, total)` returns a counter of shares, or
        # nil in a child process of a worker. The server sets the object in each worker. If no object is set, or if
        # `open` returns nil, this process alone may make as many resources as the limit allows.
        def sharing = Ractor.current[:heddle_pool_sharing]

        def sharing=(sharing)
          Ractor.current[:heddle_pool_sharing] = sharing
        end

        # Called in the pools' loop when another worker waits for a share, or has returned one.
        # @return [Float, nil] seconds until the next call; nil if no call is needed before the next such change
        def shares_changed
          loop = Fiber.current_scheduler
          Pool.all.each { |pool| pool.__send__(:shares_changed, loop) }
          sharing.limits.filter_map(&:shares_changed).min if sharing
        end
      end
    end

    private

    # Takes free shares for waiting tasks. If no task waits, closes an idle resource when another worker waits for its
    # share.
    def shares_changed(loop)
      return unless @share && @upkeep.scheduler.equal?(loop)
      return serve_waiters unless @waiters.empty?

      dispose(@idle.shift, :shared) if !@idle.empty? && @share.least_waiting
    end

    # Checks `max_total`.
    # @return [Integer] the limit of this pool alone
    def check_total(total, name, max)
      return max unless total

      count(:max_total, total, 1, Registry::LARGEST_TOTAL)
      raise ArgumentError, "`max_total` requires `name`, which identifies the pool in all workers" unless name

      [max, total].min
    end

    # Do the pool's own limit and the limit of all workers allow another resource? Takes a share if they do.
    def allot? = grow? && (@share.nil? || @share.take)

    # Reports whether this pool waits for a share, so that another worker returns one. Must be called whenever tasks
    # begin or stop waiting.
    def share_waiting = @share&.wait(!@waiters.empty? && grow?)

    # Must a released resource be closed, because another worker waits for its share?
    def yields? = @share&.yields?(size + @creating)
  end
end
