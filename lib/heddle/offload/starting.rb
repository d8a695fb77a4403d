# frozen_string_literal: true

module Heddle
  module Offload
    # The part of offloading that Ruby's own blocking operations need, even while offloading is switched off.
    module Switch
      class << self
        private

        # Starts an offload thread. C code calls this method on the loop's thread when more calls are queued than
        # threads are idle. The new thread inherits neither the fiber's storage nor the interrupt masks. If possible, it
        # leaves the thread group of the loop's thread, because a program may join all threads of a group.
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
