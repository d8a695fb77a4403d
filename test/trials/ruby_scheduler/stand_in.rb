# frozen_string_literal: true

# Loaded first by every process of Ruby's own scheduler tests: in place of the class Scheduler of their example
# (test/fiber/scheduler.rb) stands Heddle's, and the example's other schedulers are subclasses of it.
module RubySchedulerTests
  EXAMPLE = "/test/fiber/scheduler.rb"
  STAND_IN = <<~RUBY
    require "heddle/scheduler"
    require "socket"

    class Scheduler < Heddle::Scheduler
      def initialize(*) = super()
      # The example's fiber is left for good. One of Heddle's keeps its loop running until it ends.
      def transfer = block(:transfer, 0.1)
      def waiting = enum_for(:each_fiber).filter_map { |fiber, _job, state| fiber if state != :running }
    end
  RUBY

  # Ruby asks for the compiled form of each file that it loads.
  module Loading
    def load_iseq(path)
      return unless path.end_with?(EXAMPLE)

      code = File.read(path)
      replaced = code.sub!(/^class Scheduler$.*?^end$/m) { STAND_IN }
      replaced ? RubyVM::InstructionSequence.compile(code, path, path) : abort("#{path} has no class Scheduler")
    end
  end

  RubyVM::InstructionSequence.singleton_class.prepend(Loading)
end
