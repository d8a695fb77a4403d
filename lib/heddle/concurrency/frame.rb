# frozen_string_literal: true

module Heddle
  module Concurrency
    # A part of a task's code that is cancelled as a whole: the task itself, or a block inside it (a scope, a time
    # limit). The frames of a task form a stack; the task is the outermost one.
    #
    # Cancelling a frame also cancels every frame inside it, and raises {Heddle::Cancelled} once, at the task's next
    # wait. The code in `ensure` and `rescue` of a cancelled frame may wait: cancelling an outer frame raises nothing
    # until the cancelled frame has ended. If the clean-up takes more than `cancel_grace` seconds, Cancelled is raised
    # again, and then after each further `cancel_grace` seconds.
    #
    # @api private
    class Frame
      # Seconds for the clean-up of a cancelled frame. After that, Cancelled is raised again.
      DEFAULT_GRACE = 5.0

      # @return [Frame, nil] the frame around this one in the same task
      attr_accessor :outer

      # @return [Frame, nil] the frame whose cancellation has cancelled this one: this frame itself or a frame around
      #   it; nil if this frame is not cancelled
      attr_reader :origin

      # @return [Boolean] whether this frame or a frame around it was cancelled
      def cancelled? = !@origin.nil?

      # Cancels this frame and everything inside it. Returns at once; the cancelled tasks clean up afterwards.
      #
      # @return [Boolean] false: it was already cancelled, or has ended
      # @raise [ThreadError] when called from a thread other than the loop's
      def cancel
        return false if @origin || ended?

        owner = task
        owner.check_thread("cancelled")
        deferring = deferring_inside(owner.innermost)
        mark_cancelled_from(deferring ? deferring.outer : owner.innermost)
        deliver unless deferring
        true
      end

      # Seconds for the clean-up: the frame's own setting, or else the setting of the frame around it.
      def grace = @grace || (@outer ? @outer.grace : DEFAULT_GRACE)

      # Raises Cancelled in the task. An alarm calls this method again after {#grace} seconds.
      def interrupt
        owner = task
        scheduler = owner.scheduler
        return unless scheduler.interrupt(owner.fiber, Cancelled.new(cancel_message))

        alarms = Context.of(scheduler).alarms
        alarms.remove(@grace_alarm) if @grace_alarm
        @grace_alarm = alarms.add(grace, self, :interrupt)
      end

      # Does this frame defer the cancellation of frames around it?
      def shields? = false

      protected

      # @param origin [Frame] the frame that was cancelled: this one or one around it
      def mark_cancelled(origin)
        @origin = origin
      end

      # Raises Cancelled in the frame's code, once. Does nothing if that code has ended and only child tasks are left,
      # because they are cancelled separately.
      def deliver
        interrupt unless @over || @grace_alarm
      end

      # Takes this frame off the task's stack.
      #
      # @param surfaced [Boolean] whether the Cancelled raised for this frame has propagated out of its code
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

      # Frames end in the reverse order of their beginnings, with one exception: a frame that was opened inside an
      # Enumerator may end after frames around it.
      def unlink(owner)
        frame = owner.innermost
        return owner.innermost = @outer if frame.equal?(self)

        frame = frame.outer until frame.nil? || frame.outer.equal?(self)
        frame.outer = @outer if frame
      end

      # Returns the outermost frame inside this one that must not be interrupted now, because it is a {Shield} or is
      # already cancelled and cleans up.
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

      # Withdraws a pending Cancelled if the frame's code has ended without another wait. The Cancelled must not be
      # raised outside of that code.
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
