# frozen_string_literal: true

module Bench
  module Contestants
    # uringmachine through its Fiber scheduler. 0.20.0 is the newest that runs on Ruby 3.4; later ones need functions
    # that came with Ruby 4.0.
    class Uringmachine < Contestant
      def key = "uringmachine"

      def label = "uringmachine"

      def prepare
        require "uringmachine"
        require "uringmachine/fiber_scheduler"
      rescue LoadError
        raise Unavailable, "no version with a Fiber scheduler runs on Ruby #{RUBY_VERSION}"
      end

      def version = Gem.loaded_specs.fetch("uringmachine").version.to_s

      def scheduler
        @machine = UringMachine.new
        UringMachine::FiberScheduler.new(@machine)
      end

      def own_queue = Queue.new(@machine, UringMachine::Queue.new)

      # push and pop, as the rows call them.
      Queue = Struct.new(:machine, :queue) do
        def push(item) = machine.push(queue, item)

        def pop = machine.shift(queue)
      end

      private

      # Its scheduler waits at the end for the fibers that it knows then, not for those that they start.
      def finish
        scheduler = Fiber.scheduler
        scheduler.join until scheduler.fiber_map.keys.all?(&:done?)
        super
      end
    end
  end
end
