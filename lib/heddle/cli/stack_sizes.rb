# frozen_string_literal: true

require "heddle/command_line"

module Heddle
  module CLI
    # Gives fibers stacks as large as the stacks of threads. By default a fiber's VM stack has an eighth of a thread's
    # size, so code that works in a thread, such as rendering a deep tree, would raise SystemStackError in a request's
    # fiber. Only the used part of a stack needs memory.
    module StackSizes
      # The variables that set the stack sizes of fibers when Ruby starts, and the names of the corresponding sizes of
      # threads in RubyVM::DEFAULT_PARAMS.
      VARIABLES = { "RUBY_FIBER_VM_STACK_SIZE" => :thread_vm_stack_size,
                    "RUBY_FIBER_MACHINE_STACK_SIZE" => :thread_machine_stack_size }.freeze
      private_constant :VARIABLES

      # Executes this program again in the same process, with these variables, unless one of them is set already.
      # @return [void]
      def self.enlarge
        return if VARIABLES.keys.any? { |name| ENV.key?(name) }

        sizes = VARIABLES.transform_values { |name| RubyVM::DEFAULT_PARAMS.fetch(name).to_s }
        Kernel.exec(sizes, *CommandLine.read)
      end
    end
  end
end
