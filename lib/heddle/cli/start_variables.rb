# frozen_string_literal: true

require "heddle/command_line"

module Heddle
  module CLI
    # Sets variables that Ruby reads only when it starts.
    module StartVariables
      # The stack sizes of fibers, and the names of the corresponding sizes of threads. By default a fiber's VM stack
      # has an eighth of that size, so rendering a deep tree or nested partials, which works in a thread, would raise
      # SystemStackError in a request's fiber. Only the used part of a stack needs memory.
      STACKS = { "RUBY_FIBER_VM_STACK_SIZE" => :thread_vm_stack_size,
                 "RUBY_FIBER_MACHINE_STACK_SIZE" => :thread_machine_stack_size }.freeze
      # By default Ruby fills 10,000 slots of each of five sizes, together 12 MB, before it collects garbage. It also
      # keeps 50,000 free slots when the mold compacts its heap. Each worker would write to all of these.
      HEAP = Array.new(5) { |index| ["RUBY_GC_HEAP_#{index}_INIT_SLOTS", "100"] }.to_h.freeze
      private_constant :STACKS, :HEAP

      # Executes this program again in the same process, with these variables, unless a size of stacks is set already.
      # Variables of the heap that are set already stay. With `-w` Ruby would print each of them, so none is set.
      # @return [void]
      def self.set
        return if STACKS.keys.any? { |name| ENV.key?(name) }

        sizes = STACKS.transform_values { |name| RubyVM::DEFAULT_PARAMS.fetch(name).to_s }
        sizes = HEAP.except(*ENV.keys).merge(sizes) unless $VERBOSE
        Kernel.exec(sizes, *CommandLine.read)
      end
    end
  end
end
