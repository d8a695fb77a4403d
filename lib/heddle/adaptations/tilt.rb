# frozen_string_literal: true

require "monitor"

module Heddle
  module Adaptations
    # Tilt compiles a template into a method of Object with the thread's id in its name, then reads the method and
    # removes it. All requests of a loop have the same thread. A request that waits or is preempted between these steps
    # could get the method of another template, or none. So a lock protects them.
    module Tilt
      LOCK = Monitor.new # a Monitor, because a template may compile another one (Haml's filters)
      private_constant :LOCK

      # Prepended to Tilt::Template.
      module Compilation
        private

        def compile_template_method(...) = LOCK.synchronize { super }
      end
      private_constant :Compilation

      # @return [void]
      def self.install = ::Tilt::Template.prepend(Compilation)
    end
  end
end
