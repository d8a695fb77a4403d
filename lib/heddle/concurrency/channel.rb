# frozen_string_literal: true

module Heddle
  # Passes items from task to task in one loop, in order. Its methods are named like those of Ruby's `Thread::Queue`,
  # but `enq`, `deq`, `shift` and `clear` are missing. Between threads, use `Thread::Queue` itself.
  #
  #     jobs = Heddle::Channel.new(100)
  #     Heddle.async { jobs.each { |job| work(job) } }
  #     jobs << job
  #     jobs.close
  class Channel < Concurrency::ChannelCore
    # Removes and returns an item of the first channel that has one. Waits while all channels are empty.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return [Array(Channel, Object), nil] the channel and its item; nil: all channels are closed and empty, or the
    #   timeout has passed
    # @raise [NoLoopError] if it has to wait and no loop runs
    def self.select(*channels, timeout: nil)
      Arguments.refuse("the list of channels", channels, "Heddle::Channel objects") unless channels.all?(Channel)
      ready = channels.find(&:item?)
      return [ready, ready.pop] if ready

      open = channels.reject(&:closed?)
      await(open, timeout) unless open.empty?
    end

    # These methods are in C: ext/heddle/concurrency/channel.c.

    # @!method capacity
    #   @return [Integer, nil] maximum number of items before `push` waits; 0: `push` waits until its item is popped;
    #     nil: no limit

    # @!method push(item, timeout: nil)
    #   Adds an item. Waits while the channel is full.
    #
    #   @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    #   @return [self, nil] nil: the timeout has passed
    #   @raise [ClosedQueueError] when the channel is closed, before the call or during the wait

    # @!method pop(timeout: nil)
    #   Removes and returns the oldest item. Waits while the channel is empty.
    #
    #   @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    #   @return [Object, nil] nil: the channel is closed and empty, or the timeout has passed

    # @!method close
    #   Closes the channel: no item can be pushed any more, but the remaining items can be popped. A waiting {#pop}
    #   returns nil; a waiting {#push} raises ClosedQueueError.
    #
    #   @return [self]

    # @!method closed?
    #   @return [Boolean]

    # @!method item?
    #   @return [Boolean] whether {#pop} would return an item without waiting

    # @!method size
    #   @return [Integer] number of items in the channel

    # @!method num_waiting
    #   @return [Integer] number of tasks that wait in {#push} or {#pop}

    def initialize(capacity = nil)
      Arguments.count("the capacity", capacity, 0) unless capacity.nil?
      super()
      limit(capacity)
    end

    # Calls the block for every item, until the channel is closed and empty.
    #
    # @return [self, Enumerator] without a block an Enumerator
    def each
      return enum_for unless block_given?

      while item? || !closed? # not `loop`, which would rescue the block's ClosedQueueError, a StopIteration
        if item? then yield pop
        elsif (found = self.class.select(self)) then yield found.last
        end
      end
      self
    end

    # @return [Boolean]
    def empty? = size.zero?

    alias length size
  end
end
