# frozen_string_literal: true

module Heddle
  module Offload
    # The part of the protection that Ruby's own blocking operations need even while it is off.
    module Switch
      class << self
        private

        # Called from C on the loop's thread when more work is queued than threads are idle. The thread inherits neither
        # the storage nor the masks of the fiber. It leaves the fiber's thread group if it may: a program may join all
        # threads of a group.
        def start_thread
          fiber = Fiber.new(blocking: true, storage: nil) do
            thread = Thread.new { Thread.handle_interrupt(Object => :immediate) { serve } }
            thread.name = "heddle offload"
            thread.report_on_exception = false
            ThreadGroup::Default.add(thread) unless thread.group.nil? || thread.group.enclosed?
          end
          Fiber.scheduler.resume_new(fiber)
          nil
        end
      end
    end
  end
end
