# frozen_string_literal: true

require "async"
require "heddle/runtime"
require "heddle/own_code"
require "heddle/async/implicit_task"
require "heddle/async/job"
require "heddle/async/loop_calls"
require "heddle/async/reactor_guard"
require "heddle/async/root"
require "heddle/async/task_calls"

module Heddle
  # Runs programs that use the async gem on Heddle's event loop. The gem's own tasks, task tree and primitives still do
  # the work, but in a thread with Heddle's scheduler, they get that scheduler from `Fiber.scheduler`. In other threads,
  # the gem's own reactors run as before.
  #
  # Loaded by `require "heddle/async"`. {Heddle.run} and the server load it, too, if the program has loaded async.
  #
  # @api private except what sig/ declares
  module Async
    # Private methods of Async::Task that {TaskCalls} replaces or calls.
    NEEDED = %i[schedule completed! failed! cancelled! finish!].freeze
    # Prefixes of the gems whose code expects fiber switches only where it waits. Heddle does not preempt this code,
    # because a switch between two lines of it could corrupt the gems' lists.
    COOPERATIVE = %w[async- protocol- io-endpoint- io-event- io-stream-].freeze
    private_constant :NEEDED, :COOPERATIVE

    class << self
      # @api private
      # Changes the async gem. If the gem lacks methods that this code needs, logs a warning instead.
      # @return [void]
      def install
        missing = NEEDED.reject { |name| ::Async::Task.private_method_defined?(name) }
        return refuse(missing) unless missing.empty?

        Scheduler.prepend(LoopCalls)
        ::Async::Task.prepend(TaskCalls)
        ::Async::Task.singleton_class.prepend(CurrentTask)
        ::Async::Reactor.prepend(ReactorGuard)
        OwnCode.add(cooperative_folders)
      end

      private

      def refuse(missing)
        Events.report(:gem_not_adapted, reason: "tasks of the async gem can't run in Heddle's event loop: this needs " \
                                                "async 2.43 or a later 2.x, but async #{::Async::VERSION} lacks " \
                                                "Async::Task##{missing.join(", #")}")
      end

      # Prefixes of the paths at which RubyGems or Bundler installs the gems in COOPERATIVE, loaded or not, and the
      # folder of the loaded gem async.
      def cooperative_folders
        bases = Gem.path.flat_map { |path| [File.join(path, "gems"), File.join(path, "bundler/gems")] }
        found = bases.flat_map { |base| COOPERATIVE.map { |prefix| File.join(base, prefix) } }
        found.push(File.expand_path("..", ::Async::Task.instance_method(:wait).source_location.first))
        (found + found.filter_map { |path| real_path(path) }).uniq
      end

      def real_path(path)
        File.join(File.realpath(File.dirname(path)), File.basename(path))
      rescue SystemCallError
        nil
      end
    end
    install
  end
end
