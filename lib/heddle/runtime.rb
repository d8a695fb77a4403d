# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/version"
require "heddle/account"
require "heddle/request"
require "heddle/concurrency"
require "heddle/protection"
require "heddle/events"
require "heddle/offload"
# Required now, because the extension has already defined a part of these classes, and an autoload works only for
# undefined constants. The same is true for heddle/http and heddle/rack, which the server loads.
require "heddle/net/scheduler_resolver"
require "heddle/pubsub"
require "heddle/net"

# A fiber runtime for Ruby, and a Rack server on top of it. This module has the methods that programs call. The first
# call of a method loads the file that implements it.
#
#     Heddle.run do
#       page = Heddle.async { Net::HTTP.get(URI("http://localhost:9292/")) }
#       sleep 1 # runs at the same time as the request
#       puts page.value
#     end
module Heddle
  Autoloads.add(self, "heddle", %w[
    adaptations cable callback_report cli databases event_stream handoff live load_failure name_suggestion preemption
    printable_text rails server stall stalls token_bucket watch_thread web_socket working_folder
  ])
  Autoloads.add(self, "heddle/http", %w[client_gone_error])
  Autoloads.add(self, "heddle/concurrency", %w[
    barrier channel condition pool promise scope semaphore task task_tree timeout_error
  ])

  # Implements the methods below.
  module Concurrency
    Autoloads.add(self, "heddle/concurrency", %w[
      context deadline every inheritance map race root scope_frame shield supervisor task_frame thread_calls timers
      tree_signal
    ])
  end

  # Registers code of upper layers with lower layers, because lower layers must not depend on upper ones. The lambdas
  # are shareable, because other Ractors call them, too.
  Concurrency.drivers = Ractor.make_shareable(-> { Databases })
  PubSub::Route.publisher = Ractor.make_shareable(
    ->(socket, topic, data) { Server::Control::Publisher.publish(socket, topic, data) }
  )

  class << self
    # Runs the block in an event loop, and returns the block's value when the block and every task that was started in
    # it have ended. Starts a loop if this thread has none. Inside a loop it behaves like {scope}, and does not start a
    # second loop.
    #
    # Ctrl-C cancels all tasks, and raises Interrupt here when they have cleaned up; a second Ctrl-C raises it at once.
    #
    # @param selector [Symbol, nil] `:io_uring`, `:epoll`, `:kqueue` or `:select`; nil: the selector in the environment
    #   variable HEDDLE_SELECTOR, or else the best one that works on this machine. Threads other than the main thread
    #   prefer epoll, which is cheaper for a short-lived loop. Inside a loop the argument is ignored.
    # @param name [String, nil] the name of the loop's root task in {task_tree}
    # @param cancel_grace [Numeric, nil] maximum seconds that a cancelled task may take to clean up; nil: 5
    # @return what the block returns
    # @raise the error of the block, or of the first task that failed
    # @raise [DeadlockError] if all tasks wait for each other
    # @raise [NoLoopError] if this thread has a fiber scheduler of another class
    def run(selector: nil, name: nil, cancel_grace: nil, &block)
      raise ArgumentError, "Heddle.run needs a block to run in the loop" unless block

      Databases.install if defined?(::ActiveRecord) || defined?(::Sequel)
      Adaptations.load_async if defined?(::Async::Task) # the program uses the async gem
      if Fiber.current_scheduler
        scope(cancel_grace: cancel_grace) { block.call }
      elsif (scheduler = Fiber.scheduler).is_a?(Scheduler) # set with Fiber.set_scheduler, and not running yet
        Concurrency::Root.new(scheduler, name, cancel_grace, block).run_loop
      else
        raise NoLoopError, Concurrency.no_loop("Heddle.run") if scheduler

        scheduler = Scheduler.new(selector: selector || selector_of_thread)
        Concurrency::TreeSignal.during(scheduler) { Concurrency::Root.run(scheduler, name, cancel_grace, block) }
      end
    end

    # @return [Request, nil] the request that the calling fiber serves, also in tasks that the request has started; nil
    #   outside of the server, and if the option `account` is off
    def current_request
      account = Account.current
      Request.new(account) if account
    end

    # Starts a task: the block runs concurrently with the code after this call, in its own fiber. The task belongs to
    # the innermost open scope, which waits for the task before it ends.
    #
    # @param (see Scope#async)
    # @return [Task]
    # @raise [NoLoopError] outside a loop
    def async(name: nil, background: false, inherit: nil, &block)
      scope = Concurrency::Context.of(Concurrency.scheduler!("Heddle.async", Fiber.scheduler)).scope
      scope.async(name: name, background: background, inherit: inherit, &block).handle
    end

    # Runs the block, and returns when every task that was started in it has ended. The first task that fails cancels
    # the other tasks and the block, and this call raises the task's error.
    #
    # @param cancel_grace [Numeric, nil] maximum seconds that the scope's cancelled tasks may take to clean up; nil: as
    #   in the enclosing scope
    # @yield [Scope]
    # @return what the block returns; nil if the scope was cancelled with {Scope#cancel}
    # @raise [NoLoopError] outside a loop
    def scope(cancel_grace: nil, &block)
      Concurrency::ScopeFrame.new(current_task("Heddle.scope", block), cancel_grace).run(&block)
    end

    # Like {scope}, but a task that fails does not cancel the others. `on_failure` is called with the failed task and
    # its error. Without `on_failure`, the error is logged, unless another task waits for the failed task and gets the
    # error. An error of the block itself or of `on_failure`, and an exception that is not a StandardError, end the
    # scope as in {scope}.
    #
    # @param on_failure [#call, nil] called at once with the task and its error; it must not wait
    # @param cancel_grace (see scope)
    # @yield [Scope]
    # @return what the block returns
    def supervise(on_failure: nil, cancel_grace: nil, &block)
      Concurrency::Supervisor.new(current_task("Heddle.supervise", block), on_failure, cancel_grace).run(&block)
    end

    # Limits the time of the block, and of the tasks that are started in it. When the time is over, the block is
    # cancelled: the call in which it waits raises {Cancelled}, which a `rescue` without a class does not catch. The
    # block's ensure clauses may wait. Then this call raises TimeoutError. A block that computes is interrupted only
    # when it next waits. Limits may be nested.
    #
    # @param seconds [Numeric, nil] nil: no limit. 0 or less: the block's first wait raises.
    # @yield [Scope]
    # @return what the block returns
    # @raise [TimeoutError]
    # @raise [NoLoopError] outside a loop
    def timeout(seconds, &block)
      task = current_task("Heddle.timeout", block)
      return Concurrency::ScopeFrame.new(task).run(&block) if seconds.nil?

      Concurrency::Deadline.new(task, Arguments.wait("the time limit", seconds)).run(&block)
    end

    # Protects a block from cancellation, for work that must not be left half done. If a task, scope or request around
    # the block is cancelled meanwhile, or a time limit around it ends, the cancellation is deferred to the next wait
    # after the block. Tasks that are started in the block are protected, too. Outside of an event loop, the block is
    # only called.
    #
    # A cancellation from inside the block, such as the end of a time limit there, is not deferred. Three things
    # interrupt the block: `Timeout.timeout` around it, the end of the server's `stop_timeout`, and the end of
    # `cancel_grace` in a task that is already cleaning up.
    #
    #     Heddle.shield { charge(card) && record(charge) }
    #
    # @yield [Scope]
    # @return what the block returns
    def shield(&block)
      raise ArgumentError, "Heddle.shield needs a block: the code to protect from cancellation" unless block
      return yield unless Fiber.current_scheduler.is_a?(Scheduler)

      Concurrency::Shield.new(current_task("Heddle.shield", block)).run(&block)
    end

    # Calls the block for every item, concurrently, and returns the results in the order of the items. The first call
    # that fails cancels the others, and its error is raised.
    #
    # @param enum [#each] the items. With a limit, `enum` may be lazy or endless, because an item is taken only when its
    #   call can begin
    # @param limit [Integer, nil] maximum number of concurrent calls; nil: no maximum
    # @return [Array]
    def map(enum, limit: nil, &block)
      frame = Concurrency::ScopeFrame.new(current_task("Heddle.map", block))
      frame.run { |scope| Concurrency::Map.new(scope, limit).each_of(enum, &block) }
    end

    # Runs several contenders concurrently. When the first contender ends, the others are cancelled. After all have
    # ended, the first contender's value is returned, or its error is raised.
    #
    #     Heddle.race(mirrors, ignore: [SocketError]) { |mirror| fetch(mirror) }
    #
    # @param contenders [Enumerable] each contender is passed to the block; without a block, its method `call` is called
    # @param ignore [Array<Class>] a contender that fails with one of these errors drops out. If all drop out, the first
    #   error is raised, with the others attached. With `[StandardError]`, the first contender that succeeds wins.
    # @return what the winner's block returned
    def race(contenders, ignore: [], &block)
      race = nil
      Concurrency::ScopeFrame.new(current_task("Heddle.race")).run do |scope|
        race = Concurrency::Race.new(scope, ignore)
        race.start_all(contenders, block)
      end
      race.winner
    end

    # Starts a task that calls the block at an interval until the task is cancelled. As with {async}, the innermost open
    # scope waits for the task; with `background: true`, the task ends with the scope. The ticks don't drift. A tick
    # that is due while the block still runs is skipped.
    #
    #     report = Heddle.every(0.5, background: true) { puts queue.size }
    #     report.cancel
    #
    # @param interval [Numeric] seconds
    # @param (see Scope#async)
    # @yield [tick] the number of the tick, counted from 1; skipped ticks count
    # @return [Task]
    # @raise [NoLoopError] outside a loop
    def every(interval, name: nil, background: false, &block)
      raise ArgumentError, "Heddle.every needs a block to call at each interval" unless block

      Concurrency.scheduler!("Heddle.every", Fiber.scheduler)
      ticks = Concurrency::Every.new(interval)
      async(name: name || Concurrency.place(block), background: background) { ticks.each(&block) }
    end

    # Runs the block on another thread, so that only the calling fiber waits. Use it for native code that releases
    # Ruby's lock but is not offloaded automatically. Outside of an event loop, the block is only called.
    #
    # The block must not use state of the calling thread or fiber, because its Thread.current and Fiber.current differ.
    # If an exception is raised in the calling fiber meanwhile, the block is interrupted where it waits in a system
    # call.
    #
    # @return what the block returns
    def offload(&block)
      raise ArgumentError, "Heddle.offload needs a block to run on another thread" unless block

      scheduler = Fiber.current_scheduler
      scheduler.is_a?(Scheduler) ? scheduler.thread_pool.run(&block) : yield
    end

    # Runs the block without offloading: its native calls run on this thread, and block the event loop. Use it for
    # native code that must run on one thread, and for calls that are known to be quick.
    #
    # @return what the block returns
    def without_offload(&block)
      raise ArgumentError, "Heddle.without_offload needs a block to run on this thread" unless block

      Offload::Switch.inline(&block)
    end

    # The tasks of this thread's event loop: names, states, and where each task waits. To print them: `puts
    # Heddle.task_tree`.
    #
    # @param lines [Integer, nil] maximum number of backtrace lines for each task; nil: no maximum
    # @return [TaskTree]
    # @raise [NoLoopError] if this thread has no loop
    def task_tree(lines: nil)
      scheduler = Concurrency.scheduler!("Heddle.task_tree", Fiber.scheduler)
      TaskTree.new(Concurrency::Context.of(scheduler), lines: lines)
    end

    # The load of all workers of the server in which this code runs, like Puma.stats. Any worker can call it. Outside of
    # a server, `workers` is 0. In mode ractor, only the main Ractor can call it.
    #
    #     Heddle.stats # => {mode: :fiber, workers: 2, running: 3, queued: 0, connections: 9, requests: 120,
    #                  #     capacity: nil, per_worker: [{worker: 0, pid: 4709, running: 2, …}, …]}
    #
    # @return [Hash{Symbol => Object}] see docs/observability.md
    def stats = Server::LoadReport.to_h

    # Runs the block without preemption: while it computes, no other fiber of this event loop runs. While it waits,
    # others run. Use it for code that changes several objects together without a lock.
    #
    # @return what the block returns
    def without_preemption(&block)
      scheduler = Fiber.scheduler
      scheduler.is_a?(Scheduler) ? scheduler.without_preemption(&block) : yield
    end

    # Loads all files for tasks and databases, which would otherwise be loaded at their first use. Call it before you
    # start the first Ractor, because a Ractor of Ruby 3.3 can't load files.
    #
    # @return [nil]
    def eager_load
      [self, Concurrency].each do |namespace|
        namespace.constants.each do |name|
          path = namespace.autoload?(name)
          namespace.const_get(name) if path&.match?(%r{\Aheddle/(?:concurrency/|scheduler|databases)})
        end
      end
      nil
    end

    private

    # :stopdoc:

    # In other threads than the main one, such as Puma's, a loop often exists for one request only. For such a loop,
    # setting up io_uring costs more than it saves (CPU time of an empty `Heddle.run { }`: 186 µs with io_uring, 57 µs
    # with epoll).
    def selector_of_thread
      return Selector.best if Thread.current == Thread.main || ENV.key?(Selector::VARIABLE)

      Selector.unavailable_reason(:epoll) || !Selector.built.include?(:epoll) ? Selector.best : :epoll
    end

    def current_task(what, block = true) # rubocop:disable Style/OptionalBooleanParameter
      raise ArgumentError, "#{what} needs a block" unless block

      Concurrency::Context.of(Concurrency.scheduler!(what)).task!
    end
  end

  # The part of HTTP that works without a server. It is at the end of the file, because RDoc attributes the code after
  # an endless method to this module.
  module HTTP
    autoload :Client, "heddle/http/client"

    # Sends a GET request with the default {Client} of the process.
    #
    # @param (see Client#get)
    # @return [Client::Response]
    # @raise [Client::Error]
    def self.get(url, ...) = Client.default.get(url, ...)
  end
end
