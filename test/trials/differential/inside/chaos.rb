# frozen_string_literal: true

# The fourth way: where a hook of the scheduler may let other fibers run, it does, before and after; offload threads
# delay_threads. HEDDLE_CHAOS seeds both, so that a run can be repeated as far as the kernel repeats itself.

module Trials
  # Prepended to Heddle's scheduler by trials alone.
  module Chaos
    SEED = Integer(ENV.fetch("HEDDLE_CHAOS"))
    # One hook in so many continues without a switch, so that the order is not always the same.
    SPARED = 4
    # Seconds that an offload thread waits at most before and after a call.
    LONGEST_DELAY = Float(ENV.fetch("HEDDLE_CHAOS_DELAY", "0.002"))

    RANDOM = Random.new(SEED)

    # Not the hooks around closing and waking, which must not wait.
    HOOKS = %i[io_wait io_read io_write io_pread io_pwrite io_select process_wait address_resolve kernel_sleep].freeze

    HOOKS.each do |hook|
      next unless Heddle::Scheduler.method_defined?(hook)

      define_method(hook) do |*arguments, &block|
        Chaos.switch(self)
        result = super(*arguments, &block)
        Chaos.switch(self)
        result
      end
    end

    # Lets every fiber that is ready have its turn.
    def self.switch(scheduler)
      scheduler.yield if scheduler.running? && !Fiber.current.blocking? && !RANDOM.rand(SPARED).zero?
    rescue ThreadError
      nil # a signal's handler runs in the fiber that runs the loop, which can't wait
    end

    Heddle::Scheduler.prepend(self)
    Heddle::Offload::Switch.send(:delay_threads, LONGEST_DELAY, SEED)
  end
end
