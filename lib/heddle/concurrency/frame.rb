# frozen_string_literal: true

module Heddle
  module Concurrency
    # A part of a task's code that is cancelled as a whole: the task itself, or a block inside it (a scope, a time
    # limit). The frames of a task form a stack; the task is the outermost one.
    #
    # Cancelling a frame also cancels every frame inside it, and raises {Heddle::Cancelled} once, at the task's next
    # wait. The frame's `ensure` and `rescue` may then wait as well: cancelling a frame further out raises nothing until
    # this one has been left. If that takes `cancel_grace` seconds, Cancelled is raised again.
    #
    # @api private
    class Frame
      # Seconds that the clean-up of a cancelled frame may take before it is interrupted again.
      DEFAULT_GRACE = 5.0

      # @return [Frame, nil] the frame around this one in the same task
      attr_accessor :outer

      # @return [Frame, nil] the frame whose cancellation has reached this one; nil: this one is not cancelled
      attr_reader :origin

      # @return [Boolean] has this frame, or a frame around it, been cancelled?
      def cancelled? = !@origin.nil?

      # Cancels this and everything inside it. Returns at once; the cancelled tasks clean up afterwards.
      #
      # @return [Boolean] false when it was cancelled before or has ended
      # @raise [ThreadError] when called from another thread than the loop's
      def cancel
        return false if @origin || ended?

        owner = task
        owner.check_thread("cancelled")
        deferring = deferring_inside(owner.innermost)
        mark_cancelled_from(deferring ? deferring.outer : owner.innermost)
        deliver unless deferring
        true
      end

      # Seconds of grace: its own, or the outer frame's.
      def grace = @grace || (@outer ? @outer.grace : DEFAULT_GRACE)

      # Raises Cancelled. An alarm calls it again when the grace is over.
      def interrupt
        owner = task
        scheduler = owner.scheduler
        return unless scheduler.interrupt(owner.fiber, Cancelled.new(cancel_message))

        alarms = Context.of(scheduler).alarms
        alarms.remove(@grace_alarm) if @grace_alarm
        @grace_alarm = alarms.add(grace, self, :interrupt)
      end

      # Does it defer a cancellation of frames around it?
      def shields? = false

      protected

      # @param origin [Frame] the frame that was cancelled: this one or one around it
      def mark_cancelled(origin)
        @origin = origin
      end

      # Raises Cancelled in the body, once. Does nothing if the body has ended: then only child tasks are left, which
      # are cancelled separately.
      def deliver
        interrupt unless @over || @grace_alarm
      end

      # Takes this frame off the task's stack.
      #
      # @param surfaced [Boolean] whether the Cancelled that was raised for this frame has left its body
      def leave(surfaced)
        owner = task
        unlink(owner)
        @over = :ended
        return unless @origin.equal?(self)

        withdraw(owner, surfaced) if @grace_alarm
        waiting = @outer.origin
        waiting&.deliver
      end

      private

      # Frames end in reverse order, except those that were opened inside an Enumerator: it may keep one open after
      # outer frames have ended.
      def unlink(owner)
        frame = owner.innermost
        return owner.innermost = @outer if frame.equal?(self)

        frame = frame.outer until frame.nil? || frame.outer.equal?(self)
        frame.outer = @outer if frame
      end

      # Returns the outermost frame inside this one that must not be interrupted, because it is cancelled already and
      # unwinds, or because it is a {Shield}.
      def deferring_inside(frame)
        found = nil
        until frame.equal?(self)
          found = frame if frame.origin || frame.shields?
          frame = frame.outer
        end
        found
      end

      def mark_cancelled_from(frame)
        loop do
          frame.mark_cancelled(self)
          break if frame.equal?(self)

          frame = frame.outer
        end
      end

      # Takes back a Cancelled that was not raised, because the body has ended without another wait: it must not be
      # raised outside of the body.
      def withdraw(owner, surfaced)
        Context.of(owner.scheduler).alarms.remove(@grace_alarm)
        @grace_alarm = nil
        return if surfaced

        scheduler = owner.scheduler
        pending = scheduler.uninterrupt(owner.fiber)
        scheduler.interrupt(owner.fiber, pending) unless pending.nil? || pending.is_a?(Cancelled)
      end
    end
  end
end
