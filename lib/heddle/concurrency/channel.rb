# frozen_string_literal: true

require "heddle/concurrency/selection"
require "heddle/concurrency/pusher"

module Heddle
  # Hands items from task to task in one loop, in order. Its methods are those of Ruby's `Thread::Queue`, which is the
  # one to use between threads.
  #
  #     jobs = Heddle::Channel.new(100)
  #     Heddle.async { jobs.each { |job| work(job) } }
  #     jobs << job
  #     jobs.close
  class Channel
    # The first item that any of the channels has, in the order in which they are named; waits for one.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [Array(Channel, Object), nil] the channel and its item; nil when all are closed and empty, or the time is
    #   over
    # @raise [NoLoopError] when it would have to wait outside a loop
    def self.select(*channels, timeout: nil)
      ready = channels.find(&:item?)
      return [ready, ready.pop] if ready

      open = channels.reject(&:closed?)
      Concurrency::Selection.new(open).wait(timeout) unless open.empty?
    end

    # @return [Integer, nil] how many items it holds before `push` waits; 0: a push waits for its pop; nil: no limit
    attr_reader :capacity

    def initialize(capacity = nil)
      unless capacity.nil? || (capacity.is_a?(Integer) && capacity >= 0)
        raise ArgumentError, "the capacity is #{capacity.inspect}, but must be nil, or 0 or more"
      end

      @capacity = capacity
      @items = []
      @due = 0 # so many of the items are for tasks that have been woken to take one
      @takers = {}.compare_by_identity # who waits for an item: fiber => what unparks it
      @pushers = [] # who waits with an item, for room
      @closed = false
    end

    # Adds an item; waits while there is no room.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [self, nil] nil when the time is over
    # @raise [ClosedQueueError] when it is closed, also while this waits
    def push(item, timeout: nil)
      raise ClosedQueueError, "the channel is closed: nothing can be pushed any more" if @closed

      if !@takers.empty?
        @items.push(item)
        wake_taker
      elsif @capacity.nil? || @items.size - @due < @capacity
        @items.push(item)
      else
        return push_later(item, timeout)
      end
      self
    end

    alias << push

    # Takes the oldest item; waits for one.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [Object, nil] nil when it is closed and empty, or the time is over
    def pop(timeout: nil)
      if @items.size > @due
        @items.push(@pushers.shift.accept) unless @pushers.empty?
        @items.shift
      elsif !@pushers.empty? # the capacity is 0
        @pushers.shift.accept
      elsif @closed
        nil
      else
        await(timeout) ? take : nil
      end
    end

    # Calls the block for every item, until it is closed and empty.
    #
    # @return [self]
    def each
      while item? || !@closed # not `loop`: that would swallow a ClosedQueueError of the block, which is a StopIteration
        if item? then yield pop
        elsif await(nil) then yield take
        end
      end
      self
    end

    # No item can be pushed any more; those that are in it can still be popped. Who waits for an item gets nil, who
    # waits with one a ClosedQueueError.
    #
    # @return [self]
    def close
      return self if @closed

      @closed = true
      @takers.each { |fiber, waker| waker.is_a?(Concurrency::Selection::Place) ? waker.close : waker.unpark(fiber) }
      pushers, @pushers = @pushers, []
      pushers.each(&:refuse)
      self
    end

    # @return [Boolean]
    def closed? = @closed

    # @return [Boolean] would {#pop} return an item without waiting?
    def item? = @items.size > @due || !@pushers.empty?

    # @return [Boolean]
    def empty? = size.zero?

    # @return [Integer] how many items it holds
    def size = @items.size - @due
    alias length size

    # @return [Integer] how many tasks wait, for an item or for room
    def num_waiting = @takers.size + @pushers.size

    # For {.select}: lists a fiber that waits here, among others.
    #
    # @api private
    def enlist(fiber, place)
      @takers[fiber] = place
    end

    # @api private
    def dismiss(fiber)
      @takers.delete(fiber)
    end

    # The item that a fiber was woken for.
    #
    # @api private
    def take
      @due -= 1
      @items.shift
    end

    # The fiber that was woken can't take its item: it is for the next one.
    #
    # @api private
    def leave
      @due -= 1
      wake_taker unless @takers.empty?
    end

    private

    # Waits to be woken for an item. A wake-up that was meant for an earlier wait of this fiber may come, too, so what
    # counts is whether it is still listed.
    #
    # @return [Boolean] is there one to {#take}?
    def await(timeout)
      fiber = Fiber.current
      scheduler = Fiber.current_scheduler
      scheduler = Concurrency.scheduler!("Heddle::Channel#pop") unless scheduler.is_a?(Scheduler)
      @takers[fiber] = scheduler
      begin
        if timeout then Concurrency.park_while(scheduler, timeout) { @takers.key?(fiber) && !@closed }
        else scheduler.park while @takers.key?(fiber) && !@closed
        end
      rescue Exception
        leave unless @takers.delete(fiber)
        raise
      end
      !@takers.delete(fiber)
    end

    def wake_taker
      fiber, waker = @takers.shift
      @due += 1
      waker.unpark(fiber)
    end

    def push_later(item, timeout)
      pusher = Concurrency::Pusher.new("Heddle::Channel#push", item)
      @pushers.push(pusher)
      begin
        pusher.wait(timeout)
      ensure
        @pushers.delete(pusher)
      end
      raise ClosedQueueError, "the channel was closed while a push waited for room" if pusher.refused?

      self if pusher.accepted?
    end
  end
end
