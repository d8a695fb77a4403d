# frozen_string_literal: true

module Heddle
  # A limit over all workers: each resource of the pool needs a share of it.
  class Pool
    # The pools of this process or Ractor, and the object that gives them shares.
    #
    # @api private
    module Registry
      # The largest limit over all workers.
      LARGEST_TOTAL = 1024

      class << self
        # @return [ObjectSpace::WeakMap] by pool
        def pools = Ractor.current[:heddle_pools] ||= ObjectSpace::WeakMap.new

        # The object from which pools with a limit over all workers get their shares: `open(name, total)` returns a
        # counter, or nil. The server sets it in each worker; without it, a process has the whole limit.
        def sharing = Ractor.current[:heddle_pool_sharing]

        def sharing=(sharing)
          Ractor.current[:heddle_pool_sharing] = sharing
        end

        # Called in the pools' loop when another worker waits for a share, or has returned one.
        # @return [Float, nil] seconds until the next call
        def shares_changed
          loop = Fiber.current_scheduler
          Pool.all.each { |pool| pool.__send__(:shares_changed, loop) }
          sharing.limits.filter_map(&:shares_changed).min if sharing
        end
      end
    end

    private

    # Takes shares that have become free, or returns those that no fiber needs here.
    def shares_changed(loop)
      return unless @share && @upkeep.scheduler.equal?(loop)
      return serve_waiters unless @waiters.empty?

      dispose(@idle.shift, :shared) if !@idle.empty? && @share.least_waiting
    end

    # @return [Integer] the limit of this pool alone
    def check_total(total, name, max)
      return max unless total

      count(:max_total, total, 1, Registry::LARGEST_TOTAL)
      raise ArgumentError, "`max_total` needs `name`, by which the workers recognize the pool" unless name

      [max, total].min
    end

    # May another resource be made, by the pool's own limit and by the limit over all workers?
    def allot? = grow? && (@share.nil? || @share.take)

    # Must be called whenever tasks begin or stop waiting.
    def share_waiting = @share&.wait(!@waiters.empty? && grow?)

    # Must a released resource be closed because another worker waits for a share?
    def yields? = @share&.yields?(size + @creating)
  end
end
