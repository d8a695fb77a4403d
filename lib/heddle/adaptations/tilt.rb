# frozen_string_literal: true

require "monitor"

module Heddle
  module Adaptations
    # Tilt compiles a template into a method of Object, which it names by the thread, takes out of Object and removes.
    # The requests of a loop have one thread. One that is preempted between these steps, or waits, would get the method
    # of another template, or none.
    module Tilt
      LOCK = Monitor.new # a template may compile another one: a filter of Haml
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
