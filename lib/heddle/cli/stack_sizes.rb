# frozen_string_literal: true

require "heddle/command_line"

module Heddle
  module CLI
    # Gives fibers stacks as large as those of threads. Ruby's default is an eighth of them for Ruby code: a tree or
    # nested partials that a thread renders would end with SystemStackError in a request's fiber. The memory of a stack
    # is allocated where it is used.
    module StackSizes
      # The variables that Ruby reads when it starts, with the sizes of threads.
      VARIABLES = { "RUBY_FIBER_VM_STACK_SIZE" => :thread_vm_stack_size,
                    "RUBY_FIBER_MACHINE_STACK_SIZE" => :thread_machine_stack_size }.freeze
      private_constant :VARIABLES

      # Starts this program once more, in the same process, unless the environment says how large the stacks are to be.
      # @return [void]
      def self.enlarge
        return if VARIABLES.keys.any? { |name| ENV.key?(name) }

        sizes = VARIABLES.transform_values { |name| RubyVM::DEFAULT_PARAMS.fetch(name).to_s }
        Kernel.exec(sizes, *CommandLine.read)
      end
    end
  end
end
