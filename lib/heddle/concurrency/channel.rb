# frozen_string_literal: true

require "heddle/concurrency/taker"
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
      await(open, timeout) unless open.empty?
    end

    # Waits for an item of any of the channels; none has one.
    #
    # @api private
    def self.await(channels, timeout)
      taker = Concurrency::Taker.new("Heddle::Channel", (channels if channels.size > 1))
      channels.each { |channel| channel.enlist(taker) }
      begin
        taker.wait(timeout)
      rescue Exception
        taker.giver&.restore(taker.item)
        raise
      ensure
        channels.each { |channel| channel.dismiss(taker) } unless taker.giver
      end
      [taker.giver, taker.item] if taker.giver
    end

    # @return [Integer, nil] how many items it holds before `push` waits; 0: a push waits for its pop; nil: no limit
    attr_reader :capacity

    def initialize(capacity = nil)
      unless capacity.nil? || (capacity.is_a?(Integer) && capacity >= 0)
        raise ArgumentError, "the capacity is #{capacity.inspect}, but must be nil, or 0 or more"
      end

      @capacity = capacity
      @limit = capacity || Float::INFINITY
      @items = []
      @takers = []  # who waits for an item; then there is none
      @pushers = [] # who waits with an item; then there is no room
      @closed = false
    end

    # Adds an item; waits while there is no room.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [self, nil] nil when the time is over
    # @raise [ClosedQueueError] when it is closed, also while this waits
    def push(item, timeout: nil)
      raise ClosedQueueError, "the channel is closed: nothing can be pushed any more" if @closed

      if !@takers.empty? then @takers.shift.give(self, item)
      elsif @items.size < @limit then @items.push(item)
      else return push_later(item, timeout)
      end
      self
    end

    alias << push

    # Takes the oldest item; waits for one.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [Object, nil] nil when it is closed and empty, or the time is over
    def pop(timeout: nil)
      return self.class.await([self], timeout)&.last unless item? || @closed

      @items.push(@pushers.shift.accept) unless @pushers.empty?
      @items.shift
    end

    # Calls the block for every item, until it is closed and empty.
    #
    # @return [self]
    def each
      until @closed && !item?
        if item?
          yield pop
        else
          _, item = self.class.await([self], nil) || break
          yield item
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
      takers, @takers = @takers, []
      takers.each(&:closed)
      pushers, @pushers = @pushers, []
      pushers.each(&:refuse)
      self
    end

    # @return [Boolean]
    def closed? = @closed

    # @return [Boolean] would {#pop} return an item without waiting?
    def item? = !(@items.empty? && @pushers.empty?)

    # @return [Boolean]
    def empty? = @items.empty?

    # @return [Integer] how many items it holds
    def size = @items.size
    alias length size

    # @return [Integer] how many tasks wait, for an item or for room
    def num_waiting = @takers.size + @pushers.size

    # @api private
    def enlist(taker)
      @takers.push(taker)
    end

    # @api private
    def dismiss(taker)
      @takers.delete(taker) unless @takers.empty?
    end

    # An item that was given to a task which was cancelled before it had it: it is the next one again.
    #
    # @api private
    def restore(item)
      if @takers.empty? then @items.unshift(item)
      else @takers.shift.give(self, item)
      end
    end

    private

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
