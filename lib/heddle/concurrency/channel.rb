# frozen_string_literal: true

module Heddle
  # Passes items from task to task in one loop, in order. It has the methods of Ruby's `Thread::Queue`. Between threads,
  # use `Thread::Queue` itself.
  #
  #     jobs = Heddle::Channel.new(100)
  #     Heddle.async { jobs.each { |job| work(job) } }
  #     jobs << job
  #     jobs.close
  class Channel < Concurrency::ChannelCore
    # Takes an item from the first of the channels that has one; waits if none has.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [Array(Channel, Object), nil] the channel and its item; nil when all are closed and empty, or the time is
    #   over
    # @raise [NoLoopError] when it would have to wait outside a loop
    def self.select(*channels, timeout: nil)
      ready = channels.find(&:item?)
      return [ready, ready.pop] if ready

      open = channels.reject(&:closed?)
      await(open, timeout) unless open.empty?
    end

    # Items are passed on in C: ext/heddle/concurrency/channel.c.

    # @!method capacity
    #   @return [Integer, nil] how many items it holds before `push` waits; 0: `push` waits until its item is popped;
    #     nil: no limit

    # @!method push(item, timeout: nil)
    #   Adds an item; waits while there is no room.
    #
    #   @param timeout [Numeric, nil] seconds to wait at most
    #   @return [self, nil] nil when the time is over
    #   @raise [ClosedQueueError] when the channel is closed, before the call or during the wait

    # @!method pop(timeout: nil)
    #   Takes the oldest item; waits for one.
    #
    #   @param timeout [Numeric, nil] seconds to wait at most
    #   @return [Object, nil] nil when it is closed and empty, or the time is over

    # @!method close From now on no item can be pushed; the remaining items can still be popped. A waiting {#pop}
    #   returns nil, a waiting {#push} raises ClosedQueueError.
    #
    #   @return [self]

    # @!method closed?
    #   @return [Boolean]

    # @!method item?
    #   @return [Boolean] would {#pop} return an item without waiting?

    # @!method size
    #   @return [Integer] how many items it holds

    # @!method num_waiting
    #   @return [Integer] how many tasks wait, for an item or for room

    def initialize(capacity = nil)
      unless capacity.nil? || (capacity.is_a?(Integer) && capacity >= 0)
        raise ArgumentError, "the capacity is #{capacity.inspect}, but must be nil, or 0 or more"
      end

      super()
      limit(capacity)
    end

    # Calls the block for every item, until it is closed and empty.
    #
    # @return [self]
    def each
      while item? || !closed? # not `loop`: that would swallow a ClosedQueueError of the block, which is a StopIteration
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
