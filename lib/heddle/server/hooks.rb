# frozen_string_literal: true

module Heddle
  class Server
    # The blocks of a configuration file that run when a process starts, forks or stops. The mold is the process that
    # loads the application and that workers are forked from.
    class Hooks
      # Each name, and when its blocks are called.
      NAMES = {
        before_mold: "in the mold (the process that workers are forked from), before it loads the application",
        after_mold: "in the mold, after it has loaded the application; close what workers must not share",
        before_worker_fork: "in the mold, before each fork of a worker; its argument is the worker's number",
        worker_boot: "in a worker, before it serves; its argument is the worker's number, counted from 0",
        worker_stop: "in a worker, after its last request; its argument is the worker's number",
        on_booted: "in the master, when all workers serve for the first time (not after a reload)",
        on_restart: "in the master, before it starts a new master (`heddle restart`)"
      }.freeze

      def initialize
        @blocks = Hash.new { |_, _| [].freeze }
      end

      # @param name [Symbol] one of {NAMES}
      # @yield each time that the hook runs
      # @return [void]
      def add(name, &block)
        @blocks[name] = [*@blocks[name], block].freeze
      end

      # @param name [Symbol]
      # @return [Array<Proc>] in the order in which they were added
      def [](name) = @blocks[name]

      # Calls the hooks in order. Each gets the arguments that its block accepts.
      # @param name [Symbol]
      # @raise the exception of a failed hook; the hooks after it don't run
      # @return [void]
      def run(name, *arguments) = self[name].each { |block| block.call(*arguments) }

      # Calls the hooks, and logs the exceptions that they raise. Neither an exception nor a call of `exit` in a hook
      # ends the server.
      # @param name [Symbol]
      # @param log [#event]
      # @return [void]
      def run_safely(name, log)
        self[name].each do |block|
          block.call
        rescue Cancelled, SignalException
          raise
        rescue Exception => e
          log.event(:hook_failed, **failure(name, e))
        end
      end

      # Runs the hooks worker_boot and worker_stop around the block, in a server with only one process.
      # @yield serves
      # @return [Object] what the block returns
      # @raise [BootError] when a hook fails; the message has the hook's name and the line that raised
      def around_worker
        attempt(:worker_boot, 0)
        yield.tap { attempt(:worker_stop, 0) }
      end

      # @return [Array<Symbol>] the hooks that have blocks
      def names = @blocks.keys

      def freeze
        @blocks.freeze
        super
      end

      # Calls the hooks in order, as {#run} does.
      # @raise [BootError] when a hook fails; the message has the hook's name and the line that raised
      # @return [void]
      def attempt(name, *arguments)
        run(name, *arguments)
      rescue Cancelled, SignalException
        raise
      rescue Exception => e
        raise BootError, Events::TABLE.fetch(:hook_failed).text(failure(name, e))
      end

      private

      def failure(name, error)
        { hook: name, error: ErrorText.summary(error), place: error.backtrace&.first&.delete_prefix("#{Dir.pwd}/") }
      end
    end
  end
end
